import { ProtocolError, SdkError, SdkErrorCode, SdkHttpError, UnauthorizedError } from "@modelcontextprotocol/client";
import { ErrorCode, McpError } from "@modelcontextprotocol/sdk/types.js";
import { describe, expect, it } from "vitest";
import { answered, errorKindOf, wasNotSent } from "../../../../src/client/calling/outcome.js";
import { outcomeRequest } from "../../../../src/client/reporting.js";
import { ErrorKind } from "../../../../src/gen/toolcrib/v1/gate_service_pb.js";

const refused = Object.assign(new TypeError("fetch failed"), { cause: Object.assign(new Error("connect"), { code: "ECONNREFUSED" }) });
const http = (status: number) => new SdkHttpError(SdkErrorCode.SendFailed, `HTTP ${status}`, { status });

describe("how a call failed", () => {
  it.each([
    ["a time-out of SDK 2", new SdkError(SdkErrorCode.RequestTimeout, "late"), "TIMEOUT"],
    ["a time-out of SDK 1", new McpError(ErrorCode.RequestTimeout, "late"), "TIMEOUT"],
    ["AbortSignal.timeout", new DOMException("late", "TimeoutError"), "TIMEOUT"],
    ["an aborted call", new DOMException("gone", "AbortError"), "CANCELLED"],
    ["arguments that are refused", new ProtocolError(-32602, "text must be a string"), "INVALID_ARGUMENTS"],
    ["another JSON-RPC error", new ProtocolError(-32603, "internal"), "TOOL_ERROR"],
    ["an application's own JSON-RPC error", new ProtocolError(7, "no luck"), "TOOL_ERROR"],
    ["a closed connection of SDK 1", new McpError(ErrorCode.ConnectionClosed, "closed"), "UNREACHABLE"],
    ["a credential that is missing", new UnauthorizedError("who?"), "UNAUTHORIZED"],
    ["HTTP 403", http(403), "UNAUTHORIZED"],
    ["HTTP 503", http(503), "UNREACHABLE"],
    ["a server that is gone", refused, "UNREACHABLE"],
    ["anything", "thrown", "UNREACHABLE"],
    ["nothing", undefined, "UNREACHABLE"],
  ])("%s", (_, error, kind) => expect(errorKindOf(error)).toBe(kind));

  it("is sent again only where the call certainly was not carried out", () => {
    expect([refused, http(404), Object.assign(new Error("Session not found"), { code: 404 })].map(wasNotSent)).toEqual([true, true, true]);
    for (const error of [http(500), new SdkError(SdkErrorCode.ConnectionClosed, "closed"), Object.assign(new Error("reset"), { code: "ECONNRESET" }), undefined]) {
      expect(wasNotSent(error)).toBe(false);
    }
  });
});

describe("a report", () => {
  it("says what the tool said of itself, and no error kind with a success", () => {
    expect(answered("a/x", { isError: true, content: [] }, 5)).toMatchObject({ success: false, errorKind: "TOOL_ERROR" });
    const good = outcomeRequest("ns", answered("a/x", { content: [] }, 12.4), {});
    expect(good).toMatchObject({ namespace: "ns", toolId: "a/x", success: true, intent: "", latency: { seconds: 0n, nanos: 12_000_000 } });
    expect(good).not.toHaveProperty("errorKind");
    const wrong = outcomeRequest("ns", answered("a/x", { content: [] }, 1), { wrongTool: true, precedingTools: ["1", "2", "3", "4", "5", "6"] });
    expect(wrong).toMatchObject({ success: false, errorKind: ErrorKind.WRONG_TOOL, precedingTools: ["1", "2", "3", "4", "5"] });
    expect(outcomeRequest("", { toolId: "a/x", success: false, latencyMs: 1e12 }, {})).toMatchObject({ latency: { seconds: 86_400n } });
  });
});
