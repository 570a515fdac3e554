import type { ServerUnaryCall, ServerWritableStream } from "@grpc/grpc-js";
import type { Credentials } from "../identity/authenticator.js";
import { certificateOf } from "../tls.js";
import { socketOf } from "./internals.js";

type Call = Pick<ServerUnaryCall<Buffer, Buffer> | ServerWritableStream<Buffer, Buffer>, "metadata">;

/** What a call carries, looked at only when somebody asks for it: without identity nobody does. */
class CallCredentials implements Credentials {
  constructor(private readonly call: Call) {}

  get authorization(): string | undefined {
    const values = this.call.metadata.get("authorization");
    return values.length === 0 ? undefined : values.join(", ");
  }

  get certificate(): Credentials["certificate"] {
    const socket = socketOf(this.call);
    return socket && certificateOf(socket);
  }
}

export function credentialsOf(call: Call): Credentials {
  return new CallCredentials(call);
}
