/** Around every call, ours or not: metadata limit, shedding, metrics, and details for the refusals that grpc-js makes itself. */
import { type Metadata, type ServerInterceptor, status } from "@grpc/grpc-js";
import { Fault } from "../../domain/fault.js";
import { LIMITS } from "../../domain/limits.js";
import { type Deps, UNKNOWN_METHOD, codeName } from "../observe.js";
import { entriesOf } from "./internals.js";
import type { OpenStreams } from "../open-streams.js";
import { messageTooLarge, metadataTooLarge } from "../sizes.js";
import { type CallKind, type CallStatus, ObservedCall } from "./observed-call.js";
import { DETAILS_KEY, refuse } from "./status.js";

export interface InterceptorDeps extends Deps {
  readonly streams: OpenStreams;
  /** Whether the method's handler ends its streams itself when the replica drains. */
  endsItself(path: string): boolean;
}

export function createInterceptor(deps: InterceptorDeps): ServerInterceptor {
  const kinds = new Map<string, CallKind>();
  const kindOf = (path: string, streaming: boolean): CallKind => {
    const known = kinds.get(path);
    if (known) return known;
    const made = callKind(deps, path, streaming);
    kinds.set(path, made);
    return made;
  };
  return ({ path, responseStream }, call) => {
    const observed = new ObservedCall(call, kindOf(path, responseStream));
    if (responseStream && !deps.endsItself(path)) {
      const end = (fault: Fault) => observed.sendStatus(refuse(deps.log, labelOf(path), call.getPeer(), fault));
      observed.onEnd = deps.streams.add(end);
    }
    return observed;
  };
}

function labelOf(path: string): string {
  return path.startsWith("/") ? path.slice(1) : UNKNOWN_METHOD;
}

function callKind({ log, metrics, refusal }: Deps, path: string, streaming: boolean): CallKind {
  const method = labelOf(path);
  const ended: ({ value: number } | undefined)[] = [];
  return {
    method,
    streaming,
    inFlight: metrics.rpcInFlight.cell({ method }),
    durations: metrics.rpcDuration.of(method),
    ended: (code) => {
      ended[code] ??= metrics.rpcRequests.cell({ method, code: codeName(code) });
      return ended[code];
    },
    dress: (given, peer) => (isBare(given) ? refuse(log, method, peer(), explain(given)) : given),
    judge: (metadata, peer) => {
      const size = metadataBytes(metadata);
      const fault = size > LIMITS.metadataBytes ? metadataTooLarge(size) : refusal?.(path);
      return fault && refuse(log, method, peer(), fault);
    },
  };
}

/** Counted as HTTP/2 counts: each entry costs 32 bytes beside its text. */
function metadataBytes(metadata: Metadata): number {
  let total = 0;
  for (const [key, values] of entriesOf(metadata)) {
    for (const value of values) total += key.length + encodedLength(value) + 32;
  }
  return total;
}

/** Binary values travel as base64. */
function encodedLength(value: string | Buffer): number {
  return typeof value === "string" ? value.length : Math.ceil(value.byteLength / 3) * 4;
}

/** A refusal by grpc-js: it says what went wrong only in words. */
function isBare(given: CallStatus): boolean {
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

function explain(given: CallStatus): Fault | Error {
  const words = given.details ?? "";
  if (given.code === status.DEADLINE_EXCEEDED) return new Fault("DEADLINE", "the caller's deadline passed");
  if (given.code === status.RESOURCE_EXHAUSTED) return tooLarge(words);
  if (given.code === status.UNIMPLEMENTED || /deserializ|decompress|grpc-timeout|encoding/i.test(words)) {
    return new Fault("MALFORMED_MESSAGE", `the call is not well-formed gRPC: ${words}`);
  }
  return new Error(`grpc-js ended a call: ${words}`);
}

/** grpc-js says only `… larger than max (actual vs limit)`; of a compressed message nobody knows how large it would become. */
function tooLarge(words: string): Fault {
  const actual = /\((\d+) vs/.exec(words)?.[1];
  if (!words.startsWith("Sent")) return messageTooLarge("message", actual === undefined ? undefined : Number(actual));
  return messageTooLarge("answer", actual === undefined ? undefined : Number(actual) - FRAME_BYTES);
}

/** Of an answer grpc-js counts the frame too. */
const FRAME_BYTES = 5;
