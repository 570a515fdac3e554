/** The API as bytes in and bytes out, over gRPC or inside this process: what a recorder listens to. */
import { fromBinary } from "@bufbuild/protobuf";
import { type Client, type ClientReadableStream, Metadata, type ServiceError } from "@grpc/grpc-js";
import type { RegistryApi, WatchHandle } from "../../src/catalogue/api.js";
import { Fault } from "../../src/domain/fault.js";
import { WatchRequestSchema } from "../../src/gen/toolcrib/v1/registry_service_pb.js";
import { pathOf, type UnaryMethod } from "../../src/rpc/services/method.js";
import { UNARY, WATCH } from "../../src/rpc/services/index.js";
import { toWatchInput } from "../../src/rpc/translate/reads.js";
import { detailsOf } from "../support/details.js";
import { METHODS, type MethodName } from "./methods.js";

/** Why a call failed. `cause` is that of RELIST_REQUIRED. */
export interface Failure {
  readonly reason: string;
  readonly cause: string;
  readonly message: string;
}

export class Refused extends Error {
  constructor(readonly failure: Failure) {
    super(`${failure.reason}: ${failure.message}`);
  }
}

export interface WatchEars {
  message(bytes: Uint8Array): void;
  ended(failure: Failure): void;
}

export interface Link {
  /** Rejects with Refused. */
  unary(method: MethodName, request: Uint8Array): Promise<Uint8Array>;
  /** Answers what lets go of it. */
  watch(request: Uint8Array, ears: WatchEars): () => void;
}

export function failureOf(error: unknown): Failure {
  if (error instanceof Refused) return error.failure;
  if (error instanceof Fault) {
    return { reason: error.reason, cause: error.metadata["cause"] ?? "", message: error.message };
  }
  if (error instanceof Error && "code" in error) {
    const { reason, metadata, message } = detailsOf(error as ServiceError);
    return { reason: reason || `code ${String(error.code)}`, cause: metadata["cause"] ?? "", message };
  }
  return { reason: "INTERNAL", cause: "", message: String(error) };
}

/** What the listeners do with a request, without a listener. */
export function linkInside(api: RegistryApi): Link {
  // Of what the listeners serve, the methods that histories tell of need no more than the registry.
  const served = api as Parameters<UnaryMethod["handle"]>[0];
  return {
    async unary(name, request) {
      const method = UNARY.get(pathOf(METHODS[name]));
      if (!method) throw new Error(`no such method: ${name}`);
      try {
        const { parts } = await method.handle(served, fromBinary(method.input, request), { deadlineMs: undefined });
        return Buffer.concat(parts);
      } catch (error) {
        throw new Refused(failureOf(error));
      }
    },
    watch(request, ears) {
      let handle: WatchHandle | undefined;
      let left = false;
      const sink = {
        write(bytes: Uint8Array): boolean {
          if (!left) ears.message(bytes);
          return true;
        },
        fail(fault: Fault): void {
          if (!left) ears.ended(failureOf(fault));
        },
      };
      const opening = async (): Promise<void> => {
        handle = await api.watch(toWatchInput(fromBinary(WatchRequestSchema, request)), sink);
        if (left) handle.close();
      };
      opening().catch((error: unknown) => {
        if (!left) ears.ended(failureOf(error));
      });
      return () => {
        left = true;
        handle?.close();
      };
    },
  };
}

const same = (bytes: Buffer): Buffer => bytes;

/** A grpc-js client of any service: only paths and bytes are used. */
export function linkOver(client: Client, deadlineMs = 15_000): Link {
  return {
    unary: (name, request) =>
      new Promise((resolve, reject) => {
        const done = (error: ServiceError | null, answer: Buffer | undefined): void => {
          if (error) reject(new Refused(failureOf(error)));
          else resolve(answer as Buffer);
        };
        const options = { deadline: Date.now() + deadlineMs };
        const sent = Buffer.from(request);
        client.makeUnaryRequest(pathOf(METHODS[name]), same, same, sent, new Metadata(), options, done);
      }),
    watch(request, ears) {
      const call: ClientReadableStream<Buffer> = client.makeServerStreamRequest(WATCH, same, same, Buffer.from(request));
      let left = false;
      call.on("data", (bytes: Buffer) => !left && ears.message(bytes));
      call.on("error", (error: ServiceError) => !left && ears.ended(failureOf(error)));
      return () => {
        left = true;
        call.cancel();
      };
    },
  };
}
