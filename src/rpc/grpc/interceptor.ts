/** Around every call, ours or not: metadata limit, metrics, and details for the refusals that grpc-js makes itself. */
import { type Metadata, ServerInterceptingCall, type ServerInterceptor, status } from "@grpc/grpc-js";
import { Fault } from "../../domain/fault.js";
import { LIMITS } from "../../domain/limits.js";
import { type Deps, UNKNOWN_METHOD, codeName, refuse } from "./observe.js";
import type { OpenStreams } from "./open-streams.js";
import { DETAILS_KEY } from "./status.js";

type Status = Parameters<ServerInterceptingCall["sendStatus"]>[0];

export interface InterceptorDeps extends Deps {
  readonly streams: OpenStreams;
  /** Whether the method's handler ends its streams itself when the replica drains. */
  endsItself(path: string): boolean;
}

export function createInterceptor(deps: InterceptorDeps): ServerInterceptor {
  return (method, call) => {
    const label = method.path.startsWith("/") ? method.path.slice(1) : UNKNOWN_METHOD;
    const ended = measure(deps, label, method.responseStream);
    let open = true;
    const send = call.sendStatus.bind(call);
    // grpc-js itself calls this too, for an oversized message, a passed deadline, broken framing: those get details here.
    call.sendStatus = (given: Status) => {
      if (!open) return;
      open = false;
      const dressed = isBare(given) ? refuse(deps.log, label, call.getPeer(), explain(given)) : given;
      ended(dressed.code ?? status.UNKNOWN);
      send(dressed);
    };
    const fail = (fault: Fault) => call.sendStatus(refuse(deps.log, label, call.getPeer(), fault));
    const forget = method.responseStream && !deps.endsItself(method.path) ? deps.streams.add(fail) : () => {};
    return new ServerInterceptingCall(call, {
      start: (next) =>
        next({
          onReceiveMetadata: (metadata, pass) => {
            const size = metadataBytes(metadata);
            if (size > LIMITS.metadataBytes) fail(metadataTooLarge(size));
            else pass(metadata);
          },
          onCancel: () => {
            open = false;
            forget();
            ended(status.CANCELLED);
          },
        }),
    });
  };
}

/** Counts the call in; the answer counts it out, once. */
function measure({ metrics }: Deps, method: string, streaming: boolean): (code: number) => void {
  const started = performance.now();
  let open = true;
  metrics.rpcInFlight.inc({ method });
  return (code) => {
    if (!open) return;
    open = false;
    metrics.rpcInFlight.dec({ method });
    metrics.rpcRequests.inc({ method, code: codeName(code) });
    if (!streaming) metrics.rpcDuration.observe({ method }, (performance.now() - started) / 1_000);
  };
}

/** Counted as HTTP/2 counts: each entry costs 32 bytes beside its text. */
function metadataBytes(metadata: Metadata): number {
  let total = 0;
  for (const [key, values] of Object.entries(metadata.toHttp2Headers())) {
    for (const value of Array.isArray(values) ? values : [values])
      total += key.length + String(value ?? "").length + 32;
  }
  return total;
}

function metadataTooLarge(actual: number): Fault {
  const limit = LIMITS.metadataBytes;
  return new Fault(
    "MESSAGE_TOO_LARGE",
    `the call's metadata has ${actual} bytes, at most ${limit} are taken: send less`,
    {
      metadata: { limit: String(limit), actual: String(actual), part: "metadata" },
    },
  );
}

/** A refusal by grpc-js: it says what went wrong only in words. */
function isBare(given: Status): boolean {
  switch (given.code) {
    case status.RESOURCE_EXHAUSTED:
    case status.DEADLINE_EXCEEDED:
    case status.UNIMPLEMENTED:
    case status.INTERNAL:
    case status.UNKNOWN:
      return (given.metadata?.get(DETAILS_KEY).length ?? 0) === 0;
    default:
      return false;
  }
}

function explain(given: Status): Fault | Error {
  const words = given.details ?? "";
  if (given.code === status.DEADLINE_EXCEEDED) return new Fault("DEADLINE", "the caller's deadline passed");
  if (given.code === status.RESOURCE_EXHAUSTED) {
    const way = words.startsWith("Sent") ? "the answer" : "the message";
    const advice = words.startsWith("Sent") ? "ask for a smaller page" : "send it in parts";
    const limit = String(LIMITS.messageBytes);
    return new Fault(
      "MESSAGE_TOO_LARGE",
      `${way} is larger than the ${limit} bytes that one message may have: ${advice}`,
      {
        metadata: { limit, part: "message" },
      },
    );
  }
  if (given.code === status.UNIMPLEMENTED || /deserializ|decompress|grpc-timeout|encoding/i.test(words)) {
    return new Fault("MALFORMED_MESSAGE", `the call is not well-formed gRPC: ${words}`);
  }
  return new Error(`grpc-js ended a call: ${words}`);
}
