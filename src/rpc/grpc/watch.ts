/** Watch over gRPC: the outlet of one call. */
import { Metadata, type ServerWritableStream } from "@grpc/grpc-js";
import { WatchRequestSchema } from "../../gen/toolcrib/v1/registry_service_pb.js";
import { asBuffer } from "../answers.js";
import type { WireError } from "../errors.js";
import type { Door } from "../identity/door.js";
import { logRefusal } from "../observe.js";
import { OpenWatch, type Outlet, type WatchDeps } from "../open-watch.js";
import { WATCH } from "../services/index.js";
import { decode } from "../services/method.js";
import { credentialsOf } from "./credentials.js";
import { resetStream } from "./internals.js";
import { toGrpcStatus } from "./status.js";

export interface GrpcWatchDeps extends Omit<WatchDeps, "api"> {
  readonly door: Door;
}

type Call = ServerWritableStream<Buffer, Buffer>;

export function watchHandler(deps: GrpcWatchDeps): (call: Call) => void {
  return (call) => {
    open(call, deps).catch((thrown: unknown) =>
      end(call, logRefusal(deps.log, WATCH.slice(1), call.getPeer(), thrown)),
    );
  };
}

/** Rejects when there is nobody to open it for, or no request that can be read. */
async function open(call: Call, deps: GrpcWatchDeps): Promise<void> {
  const credentials = credentialsOf(call);
  const caller = await deps.door.enter(credentials);
  const request = decode(WatchRequestSchema, call.request);
  if (call.cancelled) return;
  const watch = new OpenWatch(outletOf(call), { ...deps, api: caller.api });
  const forget = deps.door.stay(credentials, caller, request.namespace, (thrown) => watch.stop(thrown));
  call.on("cancelled", () => watch.leave());
  call.once("close", () => {
    forget();
    watch.closed();
  });
  watch.start(() => request);
}

function outletOf(call: Call): Outlet {
  return {
    get peer() {
      return call.getPeer();
    },
    admitted: () => call.sendMetadata(new Metadata()),
    send: (message, taken) => void call.write(asBuffer(message), taken),
    end: (refusal) => end(call, refusal),
    abandon: () => resetStream(call),
  };
}

function end(call: Call, refusal: WireError): void {
  const status = toGrpcStatus(refusal);
  call.emit("error", Object.assign(new Error(status.details), status));
}
