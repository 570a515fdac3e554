import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { explain } from "../../../src/cli/failure.js";
import { endpointFor } from "../../../src/cli/wrap/keep.js";
import { firstSentence, formatTable, WIDTH } from "../../../src/cli/table.js";
import { eventLines } from "../../../src/cli/watch-lines.js";
import { declareTools } from "../../../src/client/offer.js";
import { parseTarget } from "../../../src/client/target.js";
import { RegistryError } from "../../../src/client/registry-error.js";
import { backoffMs } from "../../../src/client/timers.js";
import { EventSchema, EventType } from "../../../src/gen/toolcrib/v1/registry_service_pb.js";

const columns = [{ head: "TOOL" }, { head: "TOKENS (estimated)", right: true }, { head: "DESCRIPTION", shrink: true }];

describe("a table", () => {
  it("is aligned and fits 100 columns", () => {
    const rows = [
      ["memory/create_entities", "336", "Creates entities. ".repeat(20)],
      ["a/b", "1,234", "短い説明、でも長い。".repeat(20)],
    ];
    const lines = formatTable(columns, rows);
    expect(lines[0]).toBe("TOOL                    TOKENS (estimated)  DESCRIPTION");
    expect(lines[1]).toMatch(/^memory\/create_entities {17}336 {2}Creates entities\..*…$/);
    expect(lines.every((line) => line.length <= WIDTH)).toBe(true);
    expect(lines[2]).toContain("                 1,234  短い説明");
  });

  it("cuts even rows that are all long, and obeys no control character", () => {
    const id = `${"s".repeat(63)}/${"t".repeat(128)}`;
    const lines = formatTable(columns, [[id, "1", "\u001b[31mred\u0007\u202e text"]]);
    expect(lines.every((line) => line.length <= WIDTH)).toBe(true);
    expect(lines[1]).not.toMatch(/[\u0000-\u001f\u202e]/);
  });

  it("shows first sentences", () => {
    expect(firstSentence("Adds. Then more.")).toBe("Adds.");
    expect(firstSentence("Version 1.5 of it")).toBe("Version 1.5 of it");
    expect(firstSentence("追加します。それから。")).toBe("追加します。それから。");
    expect(firstSentence("")).toBe("");
  });
});

describe("a failure", () => {
  it("lists every violation", () => {
    const violations = [
      { field: "server_id", description: "is too long" },
      { field: "endpoint", description: "is no URL" },
    ];
    const error = new RegistryError("server_id: is too long (and 1 more)", {
      code: "INVALID_ARGUMENT",
      reason: "INVALID_REQUEST",
      violations,
    });
    expect(explain(error)).toEqual({
      exitCode: 1,
      lines: ["the registry refused this:", "  server_id: is too long", "  endpoint: is no URL"],
    });
  });

  it("says what to do when nobody answers", () => {
    const hint = (details: string) =>
      explain(new RegistryError("the registry at x:1 cannot be reached", { code: "UNAVAILABLE", cause: { details } })).lines[1];
    expect(hint("No connection established. Last error: Error: connect ECONNREFUSED 127.0.0.1:1")).toMatch(/^Start one with `npx toolcrib`/);
    expect(hint("No connection established. Last error: Error: read ECONNRESET")).toMatch(/^`toolcrib doctor` says what answers/);
  });
});

describe("an event", () => {
  const change = {
    revision: "r1",
    committedAt: new Date(0),
    events: [
      create(EventSchema, {
        type: EventType.SCHEMA_INVALIDATED,
        toolId: "a/b",
        serverId: "a",
        oldDigest: `sha256:${"1".repeat(64)}`,
        newDigest: `sha256:${"2".repeat(64)}`,
      }),
    ],
  };

  it("is one line for people", () => {
    expect(eventLines(change, false)).toEqual([
      expect.stringMatching(/^\d\d:\d\d:\d\d {2}SCHEMA_INVALIDATED {4}a\/b {2}sha256:1{12} → sha256:2{12}$/),
    ]);
  });

  it("is one JSON object for programs", () => {
    const [text] = eventLines(change, true);
    expect(JSON.parse(text!)).toMatchObject({
      type: "SCHEMA_INVALIDATED",
      toolId: "a/b",
      newDigest: `sha256:${"2".repeat(64)}`,
      revision: "r1",
      committedAt: "1970-01-01T00:00:00.000Z",
    });
  });
});

describe("the endpoint of a wrapped server", () => {
  const here = parseTarget("127.0.0.1:7850");
  const elsewhere = parseTarget("crib.example:7850");
  it("is told only to a registry that can dial it", () => {
    const url = "http://127.0.0.1:9/mcp";
    expect(endpointFor(here, url, undefined)).toBe(url);
    expect(endpointFor(elsewhere, url, undefined)).toBe("");
    expect(endpointFor(elsewhere, url, "https://tools.example/mcp")).toBe("https://tools.example/mcp");
  });
});

describe("definitions sent along", () => {
  it("fill one message; the rest is left for the registry to fetch", () => {
    const definition = (n: number) =>
      Buffer.from(JSON.stringify({ name: `t${n}`, description: "x".repeat(900_000), inputSchema: { type: "object" } }));
    const tools = declareTools([0, 1, 2, 3, 4].map(definition), "inline");
    expect(tools.map((tool) => (tool.definition?.length ?? 0) > 0)).toEqual([true, true, true, false, false]);
    expect(tools[4]?.stub?.digest).toMatch(/^sha256:/);
  });

  it("travel as they are when they cannot be read", () => {
    const broken = Buffer.from('{"name":"a","inputSchema":null}');
    expect(declareTools([broken], "digests")).toEqual([{ definition: broken }]);
  });
});

describe("backoff", () => {
  it("grows to a cap, is anywhere below it, and honours what the registry asks", () => {
    expect([1, 2, 3, 10, 1000].map((failures) => backoffMs(failures, () => 1))).toEqual([
      400, 800, 1600, 10_000, 10_000,
    ]);
    expect(backoffMs(5, () => 0)).toBe(0);
    expect(backoffMs(1, () => 0.5, 3_000)).toBe(3_000);
  });
});
