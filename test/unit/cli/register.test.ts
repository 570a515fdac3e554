/** What `register` says where a server could not be listed, and which options it refuses. */
import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { probeOf } from "../../../src/cli/probe-options.js";
import { unlisted } from "../../../src/cli/register.js";
import { ConditionStatus, ConditionType, ServerSchema } from "../../../src/gen/toolcrib/v1/server_pb.js";

const failing = (reason: string, message: string) =>
  create(ServerSchema, { conditions: [{ type: ConditionType.LISTED, status: ConditionStatus.FALSE, reason, message }] });
const url = "http://ann:secret@h:3000/api?key=secret";
const hint = "Check the URL http://h:3000/api (MCP servers often answer at /mcp), or `toolcrib deregister s --namespace acme`.";

describe("a server that could not be listed", () => {
  it("is told of in whole sentences", () => {
    expect(unlisted("s", "", url, failing("CONNECT_FAILED", "h:3000 refuses connections; is the server up?"))).toEqual([
      "Registered s, but it could not be listed yet: h:3000 refuses connections; is the server up? It is listed when it can be.",
    ]);
    expect(unlisted("s", "", url, undefined)).toEqual([
      "Registered s, but it could not be listed yet: it does not answer. It is listed when it can be.",
    ]);
  });

  it.each([
    ["HTTP_ERROR", "h:3000 answered initialize with HTTP 404"],
    ["PROTOCOL_ERROR", "h:3000 answered initialize with text/html; that is no MCP server, or not its path"],
    ["CONNECT_FAILED", "h cannot be resolved (ENOTFOUND)"],
  ])("says where to look after %s, without what is secret", (reason, message) => {
    expect(unlisted("s", "acme", url, failing(reason, message)).slice(1)).toEqual([hint]);
  });
});

describe("the options of probing", () => {
  it("are refused where they contradict each other", () => {
    expect(() => probeOf({ probe: false, probeFall: 2 })).toThrow(/--no-probe means/);
    expect(() => probeOf({ probe: true, probeInterval: 2_000, probeTimeout: 3_000 })).toThrow(/--probe-timeout is longer/);
    expect(probeOf({ probe: true, probeInterval: 2_000, probeTimeout: 2_000 })).toMatchObject({ timeoutMs: 2_000 });
    expect(probeOf({ probe: false })).toEqual({ off: true });
    expect(probeOf({ probe: true })).toBeUndefined();
  });
});
