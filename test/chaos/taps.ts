/** Clients of the registry whose calls and watches are written to a tape. */
import { create, toBinary } from "@bufbuild/protobuf";
import { Client, credentials } from "@grpc/grpc-js";
import type { RegistryConnection } from "../../src/client/index.js";
import { overGrpc, type WatchSource } from "../../src/client/follower/source.js";
import { RegistryService, WatchRequestSchema, WatchResponseSchema } from "../../src/gen/toolcrib/v1/registry_service_pb.js";
import { type Link, linkOver } from "../validators/links.js";
import type { Tape } from "./tape.js";

export interface NamedReplica {
  readonly name: string;
  /** host:port. */
  readonly address: string;
}

const tapped = new WeakSet<RegistryConnection>();

/** What a registrar writes through its connection; once for each connection. */
export function tapWrites(connection: RegistryConnection, tape: Tape, replica: string): void {
  if (tapped.has(connection)) return;
  tapped.add(connection);
  for (const name of ["register", "renew", "deregister"] as const) {
    const { input, output } = RegistryService.method[name];
    // The three have different types and are handled alike.
    const plain = connection[name].bind(connection) as (request: any, options?: any) => Promise<any>;
    const heard = async (request: any, options?: any): Promise<any> => {
      const ear = tape.call(replica, name, toBinary(input as any, create(input as any, request)));
      try {
        const answer = await plain(request, options);
        ear.answered(toBinary(output as any, answer));
        return answer;
      } catch (error) {
        ear.failed(error);
        throw error;
      }
    };
    Object.assign(connection, { [name]: heard });
  }
}

/** A follower's streams. */
export function tappedSource(tape: Tape, replicas: readonly NamedReplica[]): WatchSource {
  return async function* (target, request, signal, onOpen) {
    const replica = replicas.find((r) => r.address === target.address)?.name ?? target.address;
    const ear = tape.watch(replica, toBinary(WatchRequestSchema, create(WatchRequestSchema, request)));
    try {
      for await (const message of overGrpc(target, request, signal, onOpen)) {
        ear.message(toBinary(WatchResponseSchema, message));
        yield message;
      }
    } catch (error) {
      ear.failed(error);
      throw error;
    } finally {
      ear.left();
    }
  };
}

/** Bytes in, bytes out, and all of it on the tape. */
export function tappedLink(tape: Tape, { name, address }: NamedReplica, deadlineMs: number): Link & { close(): void } {
  const client = new Client(address, credentials.createInsecure(), {
    "grpc.use_local_subchannel_pool": 1,
    "grpc.initial_reconnect_backoff_ms": 100,
    "grpc.max_reconnect_backoff_ms": 1_000,
  });
  const link = linkOver(client, deadlineMs);
  return {
    async unary(method, request) {
      const ear = tape.call(name, method, request);
      try {
        const answer = await link.unary(method, request);
        ear.answered(answer);
        return answer;
      } catch (error) {
        ear.failed(error);
        throw error;
      }
    },
    watch(request, ears) {
      const ear = tape.watch(name, request);
      const leave = link.watch(request, {
        message(bytes) {
          ear.message(bytes);
          ears.message(bytes);
        },
        ended(failure) {
          ear.failed(failure);
          ears.ended(failure);
        },
      });
      return () => {
        ear.left();
        leave();
      };
    },
    close: () => client.close(),
  };
}
