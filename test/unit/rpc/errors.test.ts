import { fromBinary } from "@bufbuild/protobuf";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import { Fault } from "../../../src/domain/fault.js";
import { STATUS_OF } from "../../../src/domain/reasons.js";
import { ErrorInfoSchema } from "../../../src/gen/google/rpc/error_details_pb.js";
import { StatusSchema } from "../../../src/gen/google/rpc/status_pb.js";
import { ErrorReason } from "../../../src/gen/toolcrib/v1/error_pb.js";
import { readFileSync } from "node:fs";
import { refusalOf, statusBytes, wireError } from "../../../src/rpc/errors.js";

describe("reasons", () => {
  it("are the values of the proto enum, with the status that its comments promise", () => {
    const inProto = Object.keys(ErrorReason).filter((k) => Number.isNaN(Number(k)) && k !== "UNSPECIFIED");
    expect(Object.keys(STATUS_OF).sort()).toEqual(inProto.sort());
    const proto = readFileSync(new URL("../../../proto/toolcrib/v1/error.proto", import.meta.url), "utf8");
    const promised = [...proto.matchAll(/\/\/ ([A-Z_]+): [^\n]*(?:\n\s*\/\/[^\n]*)*\n\s*ERROR_REASON_(\w+) =/g)];
    expect(Object.fromEntries(promised.map((m) => [m[2], m[1]]))).toEqual(STATUS_OF);
  });
});

describe("refusalOf", () => {
  it("lets faults through and hides everything else behind an incident", () => {
    const fault = new Fault("NOT_FOUND", "no");
    expect(refusalOf(fault)).toEqual({ fault, incident: undefined });
    for (const thrown of [new Error("secret"), "secret", undefined, null, new Fault("INTERNAL", "secret")]) {
      const { fault: shown, incident } = refusalOf(thrown);
      expect(incident).toMatch(/^[0-9a-f]{16}$/);
      expect(shown.message).not.toContain("secret");
      expect(shown.metadata).toEqual({ incident });
      expect(shown.cause).toBe(thrown);
    }
    expect(refusalOf(1).incident).not.toBe(refusalOf(1).incident);
  });
});

describe("wireError", () => {
  it("cuts what a caller sent, so that an error never outgrows a header limit", () => {
    for (const letter of ["x", "ü", "\u{1f600}", "\ud800"]) {
      const long = letter.repeat(100_000);
      const error = wireError(
        new Fault("INVALID_REQUEST", long, {
          metadata: { long },
          violations: Array.from({ length: 50 }, () => ({ field: long, description: long })),
          substitutes: Array.from({ length: 100 }, () => long),
        }),
      );
      expect(encodeURI(error.message).length).toBeLessThanOrEqual(1_200);
      expect(statusBytes(error).byteLength * (4 / 3) + encodeURI(error.message).length).toBeLessThan(16 * 1024);
      expect(fromBinary(StatusSchema, statusBytes(error)).message).toBe(error.message);
    }
  });

  it("keeps a resume token whole", () => {
    const token = "t".repeat(512);
    const error = wireError(new Fault("WATCHER_TOO_SLOW", "slow", { metadata: { resume_token: token } }));
    const info = fromBinary(StatusSchema, statusBytes(error)).details.map((d) => anyUnpack(d, ErrorInfoSchema))[0];
    expect(info?.metadata).toEqual({ resume_token: token });
  });
});
