/** Refusals in the two ways in which this listener says them: inside a protocol, and as plain HTTP with the same JSON. */
import { type JsonValue, toBinary, toJson } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import type { WireError } from "../errors.js";
import { codeName } from "../observe.js";

/** The same code, sentence and details as over gRPC. The library's codes have google.rpc.Code's numbers. */
export function toConnectError(error: WireError): ConnectError {
  const details = error.details.map(({ desc, value }) => ({ desc, value: value as never }));
  return new ConnectError(error.message, error.code, undefined, details);
}

/** As Connect writes an error: for callers whose request is of no protocol at all. */
export function errorJson({ code, message, details }: WireError): JsonValue {
  return {
    code: codeName(code).toLowerCase(),
    message,
    details: details.map(({ desc, value }) => ({
      type: desc.typeName,
      value: Buffer.from(toBinary(desc, value)).toString("base64").replace(/=+$/, ""),
      debug: toJson(desc, value),
    })),
  };
}
