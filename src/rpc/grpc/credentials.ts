import type { ServerUnaryCall, ServerWritableStream } from "@grpc/grpc-js";
import type { Credentials } from "../identity/authenticator.js";
import { certificateOf } from "../tls.js";
import { socketOf } from "./internals.js";

type Call = Pick<ServerUnaryCall<Buffer, Buffer> | ServerWritableStream<Buffer, Buffer>, "metadata">;

/** What the call carries. Looking at the certificate is left until somebody asks for it. */
export function credentialsOf(call: Call): Credentials {
  const values = call.metadata.get("authorization");
  return {
    authorization: values.length === 0 ? undefined : values.join(", "),
    get certificate() {
      const socket = socketOf(call);
      return socket && certificateOf(socket);
    },
  };
}
