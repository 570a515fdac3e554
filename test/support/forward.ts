/** The real forwarder, on the real clock and real sockets. Where servers are is told by a map, or by a registry. */
import { create } from "@bufbuild/protobuf";
import { onTestFinished } from "vitest";
import type { ServerSource } from "../../src/client/server-facts.js";
import { RegistryError } from "../../src/client/registry-error.js";
import { Availability } from "../../src/gen/toolcrib/v1/stub_pb.js";
import { GetServerResponseSchema } from "../../src/gen/toolcrib/v1/registry_service_pb.js";
import { BreakerState, Transport } from "../../src/gen/toolcrib/v1/server_pb.js";
import type { CheckedDefinition, ForwardAnswer, Forwarder, ForwarderOptions, ForwardOutcome } from "../../src/gateway/forward/api.js";
import { createForwarder } from "../../src/gateway/forward/forwarder.js";
import { digestOf } from "../../src/domain/digest.js";
import { localPolicy, realClock, silentLogger } from "./upstream.js";

export interface PlacedInstance {
  readonly url: string;
  readonly transport?: "http-sse";
  readonly credential?: string;
  readonly down?: true;
  readonly setDigest?: string;
}

export interface Placed {
  instances: readonly PlacedInstance[];
  breaker?: BreakerState;
  setDigest?: string;
  why?: string;
}

/** Servers of namespace `default` by id; what is changed in it counts from the next lookup. */
export class Servers {
  readonly placed = new Map<string, Placed>();
  /** What the registry fails with, if it fails. */
  failure: RegistryError | undefined;
  asked = 0;

  put(serverId: string, ...instances: PlacedInstance[]): Placed {
    const placed = { instances };
    this.placed.set(serverId, placed);
    return placed;
  }

  readonly source: ServerSource = {
    getServer: async ({ namespace = "", serverId = "" }) => {
      this.asked++;
      if (this.failure) throw this.failure;
      const placed = this.placed.get(serverId);
      if (!placed) throw new RegistryError("no such server", { code: "NOT_FOUND" });
      const { instances, breaker = BreakerState.CLOSED, setDigest = "", why = "" } = placed;
      return create(GetServerResponseSchema, {
        server: {
          namespace,
          serverId,
          setDigest,
          breaker,
          breakerDetail: { state: breaker, isolatedWhy: why },
          availability: instances.some(({ down }) => !down) ? Availability.AVAILABLE : Availability.UNAVAILABLE,
          instances: instances.map((one, at) => ({
            instanceId: `instance-${at}`,
            endpoint: one.url,
            transport: one.transport === "http-sse" ? Transport.HTTP_SSE : Transport.STREAMABLE_HTTP,
            credential: one.credential ?? "",
            availability: one.down ? Availability.UNAVAILABLE : Availability.AVAILABLE,
            setDigest: one.setDigest ?? "",
          })),
        },
      });
    },
  };
}

export const away = new RegistryError("the registry cannot be reached", { code: "UNAVAILABLE" });

export interface Forwarding {
  readonly forwarder: Forwarder;
  readonly servers: Servers;
  readonly outcomes: ForwardOutcome[];
}

/** Closed when the test ends. */
export function startForwarder(options: Partial<ForwarderOptions> = {}, servers = new Servers()): Forwarding {
  const outcomes: ForwardOutcome[] = [];
  const forwarder = createForwarder({
    clock: realClock,
    logger: silentLogger,
    version: "0.0.0",
    policy: localPolicy,
    registry: servers.source,
    report: (outcome) => void outcomes.push(outcome),
    ...options,
  });
  onTestFinished(() => forwarder.close());
  return { forwarder, servers, outcomes };
}

/** Definitions by tool_id, from their inputSchema. */
export function definitionsOf(schemas: Readonly<Record<string, object>>): ForwarderOptions["definition"] {
  const definitions = new Map(Object.entries(schemas).map(([id, inputSchema]) => [id, definitionOf(id, inputSchema)]));
  return async (_namespace, toolId) => definitions.get(toolId);
}

export function definitionOf(toolId: string, inputSchema: object): CheckedDefinition {
  const bytes = Buffer.from(JSON.stringify({ name: toolId.split("/")[1], inputSchema }));
  return { digest: digestOf(bytes), bytes, freshness: "current" };
}

export function resultOf(answer: ForwardAnswer): Readonly<Record<string, any>> {
  if (answer.kind !== "result") throw new Error(`no result but ${JSON.stringify(answer)}`);
  return answer.value;
}

/** What the tool `echo` heard. */
export function echoed(answer: ForwardAnswer): { args: Record<string, unknown>; meta: Record<string, unknown> } {
  return JSON.parse(resultOf(answer)["content"][0].text);
}

export function refusalOf(answer: ForwardAnswer): Extract<ForwardAnswer, { kind: "refused" }> {
  if (answer.kind !== "refused") throw new Error(`not refused but ${JSON.stringify(answer).slice(0, 500)}`);
  return answer;
}
