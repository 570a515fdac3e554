/** What a server is like, in the words of `servers`, `top`, `doctor` and the operators' commands. */
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { timestampDate, timestampMs } from "@bufbuild/protobuf/wkt";
import type { Notice } from "../gen/toolcrib/v1/registry_service_pb.js";
import { Notice_Kind } from "../gen/toolcrib/v1/registry_service_pb.js";
import type { Condition, QuarantinedTool, Server } from "../gen/toolcrib/v1/server_pb.js";
import { BreakerState, ConditionStatus, ConditionType, ToolSource } from "../gen/toolcrib/v1/server_pb.js";
import { Availability } from "../gen/toolcrib/v1/stub_pb.js";
import { grouped, printable } from "./table.js";

/** Each state, what needs a look first; `trying`: one call is being let through, or is about to be. */
export const STATE_KINDS = ["isolated", "down", "trying", "pending", "up"] as const;

export interface ServerState {
  readonly kind: (typeof STATE_KINDS)[number];
  /** Known for what is isolated or down. */
  readonly since: Timestamp | undefined;
}

export function stateOf(server: Server): ServerState {
  const { breaker, breakerDetail, availability, source, listedAt } = server;
  if (breaker === BreakerState.ISOLATED) return { kind: "isolated", since: breakerDetail?.since };
  if (source === ToolSource.INTROSPECTED && !listedAt) return { kind: "pending", since: undefined };
  if (breaker === BreakerState.HALF_OPEN || isResumed(server)) return { kind: "trying", since: undefined };
  if (availability !== Availability.UNAVAILABLE && breaker !== BreakerState.OPEN)
    return { kind: "up", since: undefined };
  const unreached = server.conditions.find(({ type, status }) => type === ConditionType.REACHABLE && isFalse(status));
  return { kind: "down", since: unreached?.since ?? breakerDetail?.since };
}

/** Put back by an operator, and not looked at since: its first trial was due at once. */
function isResumed({ breaker, breakerDetail }: Server): boolean {
  if (breaker !== BreakerState.OPEN || !breakerDetail?.since || !breakerDetail.until) return false;
  return timestampMs(breakerDetail.until) <= timestampMs(breakerDetail.since);
}

/** `down 3m`. */
export function stateWords({ kind, since }: ServerState, nowMs: number): string {
  return since ? `${kind} ${span(nowMs - timestampMs(since))}` : kind;
}

/** The first two always hold or do not; the others are only said while they hold. */
const TROUBLES = [
  [ConditionType.REACHABLE, ""],
  [ConditionType.AUTH_REQUIRED, "auth required"],
  [ConditionType.LISTED, ""],
  [ConditionType.DRAINING, "draining"],
  [ConditionType.FLAPPING, "flapping"],
  [ConditionType.SLOW, "slow"],
] as const;

export interface Trouble {
  /** A few words, such as `connect failed` or `slow`. */
  readonly words: string;
  /** What is true of the server, such as `flapping`; empty where something is not. */
  readonly holds: string;
  readonly condition: Condition;
}

/** Conditions that need a look, the weightiest first. */
export function troublesOf(server: Server): Trouble[] {
  return TROUBLES.flatMap(([type, holds]) => {
    const condition = server.conditions.find((c) => c.type === type);
    const bad = holds === "" ? ConditionStatus.FALSE : ConditionStatus.TRUE;
    if (condition?.status !== bad) return [];
    return [{ words: holds || condition.reason.toLowerCase().replaceAll("_", " "), holds, condition }];
  });
}

/** Why it is not simply up, in a few words: an operator's own, or those of its weightiest trouble. */
export function whyOf(server: Server): string {
  if (server.breaker === BreakerState.ISOLATED) return printable(server.breakerDetail?.isolatedWhy ?? "");
  return troublesOf(server)[0]?.words ?? "";
}

/** When it is looked at next: `in 20s`, or `–` where nobody says. */
export function nextOf(server: Server, nowMs: number): string {
  const at = server.nextProbe ?? (server.breaker === BreakerState.OPEN ? server.breakerDetail?.until : undefined);
  if (!at || server.breaker === BreakerState.ISOLATED) return "–";
  const ms = timestampMs(at) - nowMs;
  return ms <= 0 ? "now" : `in ${span(ms)}`;
}

/** What holds calls back, in whole sentences; nothing while it is closed. */
export function breakerWords(server: Server, nowMs: number): string[] {
  const { breaker, breakerDetail } = server;
  if (breaker === BreakerState.ISOLATED) return [isolation(server, nowMs)];
  if (breaker !== BreakerState.OPEN && breaker !== BreakerState.HALF_OPEN) return [];
  if (isResumed(server)) return ["resumed by an operator; it is available once it answers"];
  const attempt = breakerDetail?.attempt ? `, attempt ${grouped(breakerDetail.attempt)}` : "";
  const next = breaker === BreakerState.HALF_OPEN ? "one trial is under way" : nextTrial(server, nowMs);
  return [`calls fail fast ${since(breakerDetail?.since, nowMs)}${attempt}; ${next}`];
}

function nextTrial(server: Server, nowMs: number): string {
  const at = nextOf(server, nowMs);
  const ask = `\`toolcrib refresh ${printable(server.serverId)}\``;
  return at === "–" ? `${ask} tries it now` : at === "now" ? "next trial now" : `next trial ${at}, or now with ${ask}`;
}

/** `isolated since … by ops: why`. */
export function isolation({ breakerDetail }: Server, nowMs: number): string {
  const { isolatedBy = "", isolatedWhy = "" } = breakerDetail ?? {};
  return `isolated ${since(breakerDetail?.since, nowMs)} by ${printable(isolatedBy)}: ${printable(isolatedWhy)}`;
}

/** `by ops: why`, and where another definition is approved, that. */
export function quarantineWords({ reason, quarantinedBy, approvedDigest }: QuarantinedTool): string {
  const other = approvedDigest === "" ? "" : "; its definition is no longer the approved one";
  return `by ${printable(quarantinedBy)}: ${printable(reason)}${other}`;
}

const NOTICE: Readonly<Record<Notice_Kind, string>> = {
  [Notice_Kind.UNSPECIFIED]: "Notice",
  [Notice_Kind.BRAKE]: "Brake",
  [Notice_Kind.PANIC]: "Panic",
  [Notice_Kind.HEALING]: "Healing",
};

/** `! Panic since 2026-11-30 17:57:09 UTC (3m): …`, one for each reason for which the registry acts with care. */
export function noticeLines(notices: readonly Notice[], nowMs: number): string[] {
  return notices.map((notice) => {
    const kind = NOTICE[notice.kind] ?? "Notice"; // A newer registry may know more.
    return `! ${kind} ${since(notice.since, nowMs)}: ${printable(notice.message)}`;
  });
}

/** `since 2026-11-30 17:57:09 UTC (3m)`. */
export function since(at: Timestamp | undefined, nowMs: number): string {
  if (!at) return "since a time that the registry does not say";
  const date = timestampDate(at).toISOString().slice(0, 19).replace("T", " ");
  return `since ${date} UTC (${span(nowMs - timestampMs(at))})`;
}

/** `45s`, `3m`, `2h`, `4d`: what fits a column. */
export function span(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000));
  if (seconds < 90) return `${seconds}s`;
  if (seconds < 5_400) return `${Math.round(seconds / 60)}m`;
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)}h` : `${Math.round(seconds / 86_400)}d`;
}

/** `1 tool is`, `12 tools are`. */
export function toolsAre(count: number): string {
  return count === 1 ? "1 tool is" : `${grouped(count)} tools are`;
}

function isFalse(status: ConditionStatus): boolean {
  return status === ConditionStatus.FALSE;
}
