import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Notice } from "../../gen/toolcrib/v1/registry_service_pb.js";
import type { Server } from "../../gen/toolcrib/v1/server_pb.js";
import { ago } from "../doctor/servers.js";
import { type ServerState, STATE_KINDS, noticeLines, stateOf, stateWords, troublesOf, whyOf } from "../server-state.js";
import { cut, formatTable, grouped, printable } from "../table.js";
import type { Reading } from "./rates.js";
import { methodRates, rateOf } from "./rates.js";

/** All that one frame shows. */
export interface View {
  readonly address: string;
  readonly namespace: string;
  readonly now: Date;
  /** Why the registry gives no news; empty while it does. */
  readonly trouble: string;
  readonly servers: readonly Server[];
  /** Why the registry acts with care. */
  readonly notices: readonly Notice[];
  readonly stale: boolean;
  /** The revision token of the last list. */
  readonly revision: string;
  /** The last two readings of the metrics; fewer at first, and where the ops listener cannot be asked. */
  readonly readings: readonly Reading[];
  readonly opsBase: string;
  /** Lines of what changed, the newest first. */
  readonly changes: readonly string[];
}

export interface FrameLine {
  readonly text: string;
  readonly look: "plain" | "head" | "bad";
}

/** At most `height` lines of at most `width` columns; where rows are left out, their number is said. */
export function frame(view: View, width: number, height: number): FrameLine[] {
  const top = summary(view);
  const room = Math.max(0, height - top.length);
  const calls = callLines(view, width);
  const servers = serverLines(view, width);
  // Calls and servers may take two thirds; what they do not need is left to the changes.
  const callRoom = Math.min(calls.length, Math.max(3, Math.floor(room / 3)));
  const serverRoom = Math.min(servers.length, Math.max(3, Math.floor(room / 3)));
  const changeRoom = Math.max(2, room - callRoom - serverRoom - 3);
  const sections = [fitted(calls, callRoom), fitted(servers, serverRoom), changeLines(view).slice(0, changeRoom)];
  const lines = [...top, ...sections.flatMap((section) => [plain(""), ...section])];
  return lines.slice(0, height).map(({ text, look }) => ({ text: cut(printableWords(text), width), look }));
}

function fitted(lines: FrameLine[], room: number): FrameLine[] {
  if (lines.length <= room) return lines;
  const kept = lines.slice(0, room - 1);
  return [...kept, plain(`and ${grouped(lines.length - kept.length)} more`)];
}

/** Keeps the spaces that align. */
function printableWords(text: string): string {
  return text.replace(/\s/g, " ").replace(/\S+/g, printable);
}

const plain = (text: string): FrameLine => ({ text, look: "plain" });
const head = (text: string): FrameLine => ({ text, look: "head" });
const bad = (text: string): FrameLine => ({ text, look: "bad" });

function summary(view: View): FrameLine[] {
  const { address, namespace, now, trouble, stale, servers, notices, readings } = view;
  const [last, before] = [readings.at(-1), readings.at(-2)];
  const version = last?.metrics.samples("toolcrib_build_info")[0]?.labels["version"];
  const title = `toolcrib ${version ?? ""}`.trim();
  const state = trouble !== "" ? "AWAY" : stale ? "STALE" : "serving";
  const lines = [
    head(`${title} at ${address}   namespace ${namespace || "default"}   ${now.toTimeString().slice(0, 8)}   ${state}`),
    plain(`${[`revision ${revisionOf(view)}`, ...storeFacts(last), ...rateFacts(before, last)].join("   ")}`),
    plain(serverFacts(servers)),
  ];
  if (trouble !== "") lines.push(bad(trouble));
  return [...lines, ...noticeLines(notices, now.getTime()).map(bad)];
}

function revisionOf({ readings, revision }: View): string {
  const samples = readings.at(-1)?.metrics.samples("toolcrib_log_revision") ?? [];
  if (samples.length > 0) return samples.map(({ value }) => grouped(value)).join("/");
  return revision === "" ? "?" : `…${revision.slice(-8)}`;
}

function storeFacts(last: Reading | undefined): string[] {
  if (!last) return [];
  const { metrics } = last;
  const watchers = metrics.total("toolcrib_watchers");
  const leases = metrics.total("toolcrib_leases_live");
  return [
    `store ${metrics.total("toolcrib_store_up") === 0 ? "DOWN" : "up"}`,
    `lag ${grouped(metrics.max("toolcrib_tail_lag_revisions") ?? 0)}`,
    ...(watchers === undefined ? [] : [`watchers ${grouped(watchers)}`]),
    ...(leases === undefined ? [] : [`leases ${grouped(leases)}`]),
    ...(metrics.total("toolcrib_brake_engaged") === 1 ? ["BRAKE"] : []),
  ];
}

function rateFacts(before: Reading | undefined, last: Reading | undefined): string[] {
  if (!before || !last) return [];
  return [`commits ${perSecond(rateOf("toolcrib_commits_total", before, last))}/s`];
}

function serverFacts(servers: readonly Server[]): string {
  const states = servers.map((server) => stateOf(server).kind);
  const count = (...kinds: readonly ServerState["kind"][]): number => states.filter((s) => kinds.includes(s)).length;
  const tools = servers.reduce((sum, server) => sum + server.toolCount, 0);
  const rejected = servers.reduce((sum, server) => sum + server.rejectedCount, 0);
  const not = rejected > 0 ? `, ${grouped(rejected)} not listed` : "";
  return `servers ${grouped(servers.length)}: ${count("up")} up, ${count("down", "trying")} down, ${count("isolated")} isolated, ${count("pending")} pending   tools ${grouped(tools)}${not}`;
}

function callLines({ readings, opsBase }: View, width: number): FrameLine[] {
  const [before, last] = readings.slice(-2);
  if (!before || !last)
    return [head("CALLS"), plain(`no rates: the ops listener was not heard at ${opsBase} (name it with --ops)`)];
  const columns = [
    { head: "CALLS", shrink: true },
    ...["/S", "ERRORS/S", "MEAN MS", "OPEN"].map((name) => ({ head: name, right: true })),
  ];
  const rates = methodRates(before, last);
  const rows = rates.map(({ method, perSecond: rate, errorsPerSecond, meanMs, inFlight }) => [
    method,
    perSecond(rate),
    perSecond(errorsPerSecond),
    meanMs === undefined ? "–" : meanMs.toFixed(meanMs < 10 ? 1 : 0),
    grouped(inFlight),
  ]);
  return formatTable(columns, rows, width).map((text, i) => {
    if (i === 0) return head(text);
    return (rates[i - 1]?.errorsPerSecond ?? 0) > 0 ? bad(text) : plain(text);
  });
}

function perSecond(rate: number): string {
  return rate >= 100 ? grouped(Math.round(rate)) : rate.toFixed(1);
}

/** What needs a look first. */
function serverLines({ servers, now }: View, width: number): FrameLine[] {
  const rows = servers
    .map((server) => ({ server, state: stateOf(server) }))
    .sort((a, b) => STATE_KINDS.indexOf(a.state.kind) - STATE_KINDS.indexOf(b.state.kind));
  const columns = [
    { head: "SERVERS" },
    { head: "STATE" },
    { head: "TOOLS", right: true },
    { head: "LISTED" },
    { head: "NOTE", shrink: true },
  ];
  const cells = rows.map(({ server, state }) => [
    server.serverId,
    stateWords(state, now.getTime()),
    grouped(server.toolCount),
    server.listedAt ? ago(now.getTime() - timestampMs(server.listedAt)) : "–",
    noteOf(server, state),
  ]);
  if (rows.length === 0) return [head("SERVERS"), plain("none")];
  return formatTable(columns, cells, width).map((text, i) => {
    if (i === 0) return head(text);
    return rows[i - 1]?.state.kind === "up" ? plain(text) : bad(text);
  });
}

function noteOf(server: Server, { kind }: ServerState): string {
  if (kind === "isolated") return whyOf(server);
  const [trouble] = troublesOf(server);
  return trouble?.condition.message || whyOf(server);
}

function changeLines({ changes }: View): FrameLine[] {
  return [
    head("LAST CHANGES"),
    ...(changes.length === 0 ? [plain("none since this view was opened")] : changes.map(plain)),
  ];
}
