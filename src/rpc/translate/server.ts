/** A server's record as readers see it. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Notice, RegistryApi } from "../../catalogue/api.js";
import { withheldOf } from "../../catalogue/quarantine/quarantine.js";
import { DEFAULT_PROBING, type Probing, sameProbing } from "../../domain/health/probing.js";
import { LIMITS } from "../../domain/limits.js";
import { type Position, formatRevision } from "../../domain/revision.js";
import {
  type Availability,
  type Condition,
  type Instance,
  type PublishedBreaker,
  type RejectedTool,
  type ServerRecord,
  etagOf,
} from "../../domain/server.js";
import { NoticeSchema, Notice_Kind, type Notice as WireNotice } from "../../gen/toolcrib/v1/registry_service_pb.js";
import {
  type Breaker,
  BreakerSchema,
  BreakerState,
  ConditionSchema,
  ConditionStatus,
  ConditionType,
  InstanceSchema,
  ProbeSettingsSchema,
  RejectedToolSchema,
  Retention,
  type Server,
  ServerSchema,
  ToolSource,
  Transport,
  type Condition as WireCondition,
  type Instance as WireInstance,
} from "../../gen/toolcrib/v1/server_pb.js";
import { fromQuarantined } from "./quarantine.js";
import { Availability as WireAvailability } from "../../gen/toolcrib/v1/stub_pb.js";

export const AVAILABILITY: Readonly<Record<Availability, WireAvailability>> = {
  available: WireAvailability.AVAILABLE,
  unavailable: WireAvailability.UNAVAILABLE,
};

const CONDITION_TYPE: Readonly<Record<Condition["type"], ConditionType>> = {
  Reachable: ConditionType.REACHABLE,
  Listed: ConditionType.LISTED,
  AuthRequired: ConditionType.AUTH_REQUIRED,
  Slow: ConditionType.SLOW,
  Flapping: ConditionType.FLAPPING,
  Draining: ConditionType.DRAINING,
};

const CONDITION_STATUS: Readonly<Record<Condition["status"], ConditionStatus>> = {
  true: ConditionStatus.TRUE,
  false: ConditionStatus.FALSE,
  unknown: ConditionStatus.UNKNOWN,
};

/**
 * One server. Its revision is the position it was read at: a record keeps only its number, and a token needs the chain
 * as well; as `min_revision` the later token asks for no less.
 */
export function fromRecord(
  record: ServerRecord,
  position: Position,
  live: Pick<RegistryApi, "health">,
  rejectedShown: number = LIMITS.rejectedKept,
  quarantinedShown: number = LIMITS.rejectedKept,
): Server {
  const { header } = record;
  const withheld = withheldOf(record);
  const health = live.health(header.namespace, header.serverId);
  const breaker = fromBreaker(header.breaker, health?.halfOpen ?? false);
  return create(ServerSchema, {
    namespace: header.namespace,
    serverId: header.serverId,
    title: header.title,
    tags: [...header.tags],
    source: header.source === "declared" ? ToolSource.DECLARED : ToolSource.INTROSPECTED,
    retention: header.retention === "leased" ? Retention.LEASED : Retention.STANDING,
    instances: header.instances.map(fromInstance),
    availability: AVAILABILITY[header.availability],
    conditions: header.conditions.map(fromCondition),
    breaker: breaker.state,
    breakerDetail: breaker,
    nextProbe: health?.nextProbeMs === undefined ? undefined : timestampFromMs(health.nextProbeMs),
    toolCount: record.tools.length - withheld.length,
    quarantinedTools: withheld.slice(0, quarantinedShown).map(fromQuarantined),
    quarantinedCount: withheld.length,
    rejectedTools: header.rejected.slice(0, rejectedShown).map(fromRejected),
    rejectedCount: header.rejectedCount,
    setDigest: header.setDigest,
    revision: formatRevision(position),
    etag: etagOf(record),
    protocolVersion: header.protocolVersion,
    listedAt: header.listedAtMs > 0 ? timestampFromMs(header.listedAtMs) : undefined,
    owner: header.owner,
  });
}

/** A page of servers shows at most LIMITS.rejectedKept rejected tools, and as many withheld ones, in all; GetServer shows those of one. */
export function fromRecords(
  records: readonly ServerRecord[],
  position: Position,
  live: Pick<RegistryApi, "health">,
): Server[] {
  let rejected: number = LIMITS.rejectedKept;
  let quarantined: number = LIMITS.rejectedKept;
  return records.map((record) => {
    const server = fromRecord(record, position, live, rejected, quarantined);
    rejected -= server.rejectedTools.length;
    quarantined -= server.quarantinedTools.length;
    return server;
  });
}

function fromInstance(instance: Instance): WireInstance {
  return create(InstanceSchema, {
    instanceId: instance.instanceId,
    endpoint: withoutCredentials(instance.endpoint),
    transport: instance.transport === "http-sse" ? Transport.HTTP_SSE : Transport.STREAMABLE_HTTP,
    setDigest: instance.setDigest,
    registeredAt: timestampFromMs(instance.registeredAtMs),
    leaseTtl: instance.ttlMs > 0 ? durationFromMs(instance.ttlMs) : undefined,
    credential: instance.credential,
    availability: AVAILABILITY[instance.availability],
    probe: sameProbing(instance.probing, DEFAULT_PROBING) ? undefined : fromProbing(instance.probing),
  });
}

function fromProbing({ intervalMs, timeoutMs, fall, rise, off }: Probing): MessageInitShape<typeof ProbeSettingsSchema> {
  return {
    interval: intervalMs > 0 ? durationFromMs(intervalMs) : undefined,
    timeout: timeoutMs > 0 ? durationFromMs(timeoutMs) : undefined,
    fall,
    rise,
    off,
  };
}

function fromBreaker(breaker: PublishedBreaker, halfOpen: boolean): Breaker {
  if (breaker.kind === "closed") return create(BreakerSchema, { state: BreakerState.CLOSED });
  const since = timestampFromMs(breaker.sinceMs);
  if (breaker.kind === "isolated") {
    const { by: isolatedBy, why: isolatedWhy } = breaker;
    return create(BreakerSchema, { state: BreakerState.ISOLATED, since, isolatedBy, isolatedWhy });
  }
  const state = halfOpen ? BreakerState.HALF_OPEN : BreakerState.OPEN;
  return create(BreakerSchema, { state, since, until: timestampFromMs(breaker.untilMs), attempt: breaker.attempt });
}

const NOTICE_KIND: Readonly<Record<Notice["kind"], Notice_Kind>> = {
  brake: Notice_Kind.BRAKE,
  panic: Notice_Kind.PANIC,
  healing: Notice_Kind.HEALING,
};

export function fromNotices(notices: readonly Notice[]): WireNotice[] {
  return notices.map(({ kind, message, sinceMs }) =>
    create(NoticeSchema, { kind: NOTICE_KIND[kind], message, since: timestampFromMs(sinceMs) }),
  );
}

/** User information goes, and so do the values of a query, where API keys are often put. */
export function withoutCredentials(endpoint: string): string {
  if (endpoint === "" || !URL.canParse(endpoint)) return "";
  const url = new URL(endpoint);
  if (`${url.username}${url.password}${url.search}${url.hash}` === "") return endpoint;
  url.username = "";
  url.password = "";
  url.hash = "";
  for (const key of new Set(url.searchParams.keys())) url.searchParams.set(key, "***");
  return url.href;
}

function fromCondition(condition: Condition): WireCondition {
  return create(ConditionSchema, {
    type: CONDITION_TYPE[condition.type],
    status: CONDITION_STATUS[condition.status],
    reason: condition.reason,
    message: condition.message,
    since: timestampFromMs(condition.sinceMs),
  });
}

function fromRejected(rejected: RejectedTool) {
  return create(RejectedToolSchema, { name: rejected.name, reasons: [...rejected.reasons] });
}
