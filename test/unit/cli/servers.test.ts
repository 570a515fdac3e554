/** What operators see at a glance, at a time that stands still. */
import { type MessageInitShape, create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import { isolated, refreshed, resumed } from "../../../src/cli/admin.js";
import { serverLines } from "../../../src/cli/servers.js";
import { frame } from "../../../src/cli/top/frame.js";
import { RefreshServerResponseSchema, ResumeServerResponseSchema } from "../../../src/gen/toolcrib/v1/admin_service_pb.js";
import { NoticeSchema, Notice_Kind } from "../../../src/gen/toolcrib/v1/registry_service_pb.js";
import { BreakerState, ConditionStatus, ConditionType, Retention, ServerSchema, ToolSource } from "../../../src/gen/toolcrib/v1/server_pb.js";
import { Availability } from "../../../src/gen/toolcrib/v1/stub_pb.js";

const NOW = Date.UTC(2026, 10, 30, 18, 0, 0);
const MINUTE = 60_000;
const at = (ms: number) => timestampFromMs(NOW + ms);

function server(serverId: string, more: MessageInitShape<typeof ServerSchema> = {}) {
  return create(ServerSchema, {
    serverId,
    toolCount: 12,
    source: ToolSource.INTROSPECTED,
    retention: Retention.STANDING,
    availability: Availability.AVAILABLE,
    breaker: BreakerState.CLOSED,
    listedAt: at(-MINUTE),
    instances: [{ endpoint: `http://${serverId}.tools.example:3000/mcp` }],
    nextProbe: at(4_000),
    ...more,
  });
}

const condition = (type: ConditionType, status: ConditionStatus, reason: string, message: string, sinceMs: number) => ({
  type,
  status,
  reason,
  message,
  since: at(sinceMs),
});
const OUT = { availability: Availability.UNAVAILABLE };
const refused = "127.0.0.1:3000 refuses connections";
const unreached = condition(ConditionType.REACHABLE, ConditionStatus.FALSE, "CONNECT_FAILED", refused, -3 * MINUTE);
const unlisted = condition(ConditionType.LISTED, ConditionStatus.FALSE, "CONNECT_FAILED", refused, -3 * MINUTE);
const open = (untilMs: number, sinceMs = -3 * MINUTE) => ({
  breaker: BreakerState.OPEN,
  breakerDetail: { since: at(sinceMs), until: at(untilMs), attempt: 4 },
  nextProbe: undefined,
});

const up = server("up");
const down = server("down", { ...OUT, ...open(20_000), conditions: [unreached, unlisted] });
const trial = server("trial", { ...OUT, ...open(-1), breaker: BreakerState.HALF_OPEN, conditions: [unreached] });
const back = server("back", { ...OUT, ...open(-1_000, -1_000) });
const pending = server("pending", { ...OUT, listedAt: undefined, toolCount: 0, conditions: [unreached], nextProbe: at(-5) });
const why = "it drops rows of the ledger\u001b[31m, see #42";
const isolatedServer = server("isolated", {
  ...OUT,
  breaker: BreakerState.ISOLATED,
  breakerDetail: { since: at(-120 * MINUTE), isolatedBy: "ann", isolatedWhy: why },
  conditions: [condition(ConditionType.REACHABLE, ConditionStatus.TRUE, "ANSWERED", "", -MINUTE)],
});
const troubled = server("troubled", {
  conditions: [
    condition(ConditionType.SLOW, ConditionStatus.TRUE, "SLOW_ANSWERS", "half of its answers take longer than 2 s", -5 * MINUTE),
    condition(ConditionType.FLAPPING, ConditionStatus.TRUE, "MANY_CHANGES", "", -MINUTE),
    condition(ConditionType.AUTH_REQUIRED, ConditionStatus.TRUE, "UNAUTHORIZED", "it answers 401", -MINUTE),
    condition(ConditionType.DRAINING, ConditionStatus.FALSE, "", "not told", -MINUTE),
  ],
});
const all = [up, down, trial, back, pending, isolatedServer, troubled];
const panic = create(NoticeSchema, { kind: Notice_Kind.PANIC, message: "7 of 9 servers went down at once: is this replica cut off?", since: at(-3 * MINUTE) });
const brake = create(NoticeSchema, { kind: Notice_Kind.BRAKE, message: "the store was away", since: at(-10_000) });

describe("toolcrib servers", () => {
  it("shows at a glance what is down, since when and why, in 100 columns", () => {
    const lines = serverLines(all, [], NOW);
    expect(lines.slice(0, 8)).toEqual([
      "SERVER    TOOLS  STATE        WHY                    NEXT    KEPT      RUNS  ENDPOINT",
      "up           12  up                                  in 4s   standing     1  http://up.tools.exampl…",
      "down         12  down 3m      connect failed         in 20s  standing     1  http://down.tools.exam…",
      "trial        12  trying       connect failed         –       standing     1  http://trial.tools.exa…",
      "back         12  trying                              now     standing     1  http://back.tools.exam…",
      "pending       0  pending      connect failed         now     standing     1  http://pending.tools.e…",
      "isolated     12  isolated 2h  it drops rows of the…  –       standing     1  http://isolated.tools.…",
      "troubled     12  up           auth required          in 4s   standing     1  http://troubled.tools.…",
    ]);
    expect(lines.slice(0, 8).every((text) => text.length <= 100)).toBe(true);
  });

  it("says below it what an operator has to know, each cause once", () => {
    expect(serverLines(all, [], NOW).slice(8)).toEqual([
      "  down: calls fail fast since 2026-11-30 17:57:00 UTC (3m), attempt 4; next trial in 20s, or now with `toolcrib refresh down`",
      `  down: ${refused}`,
      "  trial: calls fail fast since 2026-11-30 17:57:00 UTC (3m), attempt 4; one trial is under way",
      `  trial: ${refused}`,
      "  back: resumed by an operator; it is available once it answers",
      `  pending: ${refused}`,
      "  isolated: isolated since 2026-11-30 16:00:00 UTC (2h) by ann: it drops rows of the ledger [31m, see #42",
      "  troubled: auth required since 2026-11-30 17:59:00 UTC (60s): it answers 401",
      "  troubled: flapping since 2026-11-30 17:59:00 UTC (60s)",
      "  troubled: slow since 2026-11-30 17:55:00 UTC (5m): half of its answers take longer than 2 s",
    ]);
  });

  it("tells how many instances answer, and which do not", () => {
    const instance = (name: string, availability: Availability) => ({ endpoint: `http://${name}:3000/mcp`, availability });
    const instances = [instance("one", Availability.UNAVAILABLE), instance("two", Availability.AVAILABLE)];
    const lines = serverLines([server("pair", { instances })], [], NOW);
    expect(lines[1]).toMatch(/ standing +1\/2 +http:\/\/two/);
    expect(lines.slice(2)).toEqual(["  pair: its instance http://one:3000/mcp does not answer; another does"]);
    const none = instances.map((one) => ({ ...one, availability: Availability.UNAVAILABLE }));
    expect(serverLines([server("pair", { ...OUT, instances: none })], [], NOW)[1]).toMatch(/ 0\/2 /);
  });

  it("has on top why the registry acts with care, even without servers", () => {
    expect(serverLines([], [panic, brake], NOW)).toEqual([
      "! Panic since 2026-11-30 17:57:00 UTC (3m): 7 of 9 servers went down at once: is this replica cut off?",
      "! Brake since 2026-11-30 17:59:50 UTC (10s): the store was away",
      "No servers.",
    ]);
  });
});

describe("toolcrib top", () => {
  it("counts servers by state, shows what needs a look first, and the notices", () => {
    const view = { address: "x:1", namespace: "", now: new Date(NOW), trouble: "", servers: all, notices: [panic], stale: false };
    const lines = frame({ ...view, revision: "", readings: [], opsBase: "http://x:3", changes: [] }, 100, 60).map((l) => l.text);
    expect(lines[2]).toBe("servers 7: 2 up, 3 down, 1 isolated, 1 pending   tools 72");
    expect(lines[3]).toMatch(/^! Panic since .* \(3m\): 7 of 9 servers/);
    const from = lines.findIndex((text) => text.startsWith("SERVERS"));
    expect(lines.slice(from + 1, from + 8).map((text) => text.split(" ")[0])).toEqual(["isolated", "down", "trial", "back", "pending", "up", "troubled"]);
    expect(lines[from + 1]).toMatch(/^isolated +isolated 2h +12 .*it drops rows/);
    expect(lines[from + 2]).toMatch(/^down +down 3m +12 .*refuses connections/);
  });
});

describe("toolcrib top of many servers", () => {
  const many = Array.from({ length: 30 }, (_, i) => server(`s${i}`));
  const view = { address: "x:1", namespace: "", now: new Date(NOW), trouble: "", servers: many, notices: [], stale: false };
  const rows = (height: number) =>
    frame({ ...view, revision: "", readings: [], opsBase: "http://x:3", changes: [] }, 100, height).map((l) => l.text);

  it("says how many rows a terminal has no room for", () => {
    expect(rows(24).length).toBeLessThanOrEqual(24);
    expect(rows(24)).toContain("and 25 more");
  });

  it("shows all of them where there is no end", () => {
    expect(rows(Number.POSITIVE_INFINITY).filter((text) => /^s\d+ /.test(text))).toHaveLength(30);
  });
});

describe("what the operators' commands say", () => {
  it("is where the server stands and how to go on", () => {
    expect(isolated(isolatedServer, "isolated", "acme", NOW)).toEqual([
      "isolated is isolated since 2026-11-30 16:00:00 UTC (2h) by ann: it drops rows of the ledger [31m, see #42",
      "Its 12 tools are unavailable until `toolcrib resume isolated --namespace acme`.",
    ]);
    const resume = (one: typeof up, was: boolean) => resumed(create(ResumeServerResponseSchema, { server: one, resumed: was }), "s");
    expect(resume(server("s", { toolCount: 1 }), true)).toEqual(["s is back: its 1 tool is available."]);
    expect(resume(back, true)).toEqual(["s is resumed: its 12 tools are available once it answers; `toolcrib servers` shows whether it does."]);
    expect(resume(up, false)).toEqual(["s was not isolated: nothing to resume."]);
    const refresh = (listed: number, changed: boolean) =>
      refreshed(create(RefreshServerResponseSchema, { server: up, listed, changed }), "s", NOW);
    expect(refresh(12, true)).toEqual(["s lists 12 tools: the catalogue has changed."]);
    const healed = create(RefreshServerResponseSchema, { server: down, listed: 12, changed: false });
    expect(refreshed(healed, "down", NOW)).toEqual([
      "down lists 12 tools: nothing has changed.",
      "It answers again: `toolcrib servers` shows it up once its next look has been.",
    ]);
    expect(refresh(1, false)).toEqual([
      "s lists 1 tool: nothing has changed.",
      "The catalogue still holds 12: a list that lost tools is believed after another asking.",
    ]);
  });
});
