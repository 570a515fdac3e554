/** Watch over gRPC: the outlet of one call. */
import { Metadata, type ServerWritableStream } from "@grpc/grpc-js";
import { WatchRequestSchema } from "../../gen/toolcrib/v1/registry_service_pb.js";
import { asBuffer } from "../answers.js";
import { OpenWatch, type Outlet, type WatchDeps } from "../open-watch.js";
import { decode } from "../services.js";
import { resetStream } from "./internals.js";
import { toGrpcStatus } from "./status.js";

type Call = ServerWritableStream<Buffer, Buffer>;

export function watchHandler(deps: WatchDeps): (call: Call) => void {
  return (call) => {
    const watch = new OpenWatch(outletOf(call), deps);
    call.on("cancelled", () => watch.leave());
    call.once("close", () => watch.closed());
    watch.start(() => decode(WatchRequestSchema, call.request));
  };
}

function outletOf(call: Call): Outlet {
  return {
    get peer() {
      return call.getPeer();
    },
    admitted: () => call.sendMetadata(new Metadata()),
    send: (message, taken) => void call.write(asBuffer(message), taken),
    end: (refusal) => {
      const status = toGrpcStatus(refusal);
      call.emit("error", Object.assign(new Error(status.details), status));
    },
    abandon: () => resetStream(call),
  };
}
