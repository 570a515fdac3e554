/** The use-cases as transports see them: plain values in, plain values or stored bytes out, `Fault` thrown. */
import type { Filter } from "../domain/filter.js";
import type { Fault } from "../domain/fault.js";
import type { Probing } from "../domain/health/probing.js";
import type { Principal } from "../domain/identity.js";
import type { ApproveInput } from "../domain/admission/overlay.js";
import type { ApproveToolInput, QuarantineInput } from "../domain/admission/quarantine.js";
import type { QualityWarning } from "../domain/quality/warning.js";
import type { Position } from "../domain/revision.js";
import type { Availability, ServerRecord, Tool, Transport } from "../domain/server.js";
import type { StubFields } from "../domain/stub.js";
import type { ApproveOutput, ApproveToolOutput, LintOutput, LintQuery, OverlaysOutput, QuarantineOutput, WithdrawInput, WithdrawOutput } from "./label-api.js";

export type * from "./label-api.js";

/** A label as a registrant sends it: everything but what the registry fills in. */
export type DeclaredLabel = Omit<StubFields, "serverId" | "sizeBytes">;

export interface DeclaredTool {
  readonly label: DeclaredLabel | undefined;
  /** Whole definition; undefined when it is to be fetched from the server. */
  readonly definition: Uint8Array | undefined;
  /** What only the wire can get wrong about this one tool; it is rejected for it. */
  readonly wireProblem?: string;
}

export type Offer =
  | { readonly kind: "declared"; readonly tools: readonly DeclaredTool[] }
  | { readonly kind: "introspect" }
  /** Neither was given: a violation, reported with the others. */
  | { readonly kind: "none" };

export interface RegisterInput {
  /** Empty = default. */
  readonly namespace: string;
  readonly serverId: string;
  readonly instanceId: string;
  readonly endpoint: string;
  readonly transport: Transport;
  readonly title: string;
  readonly tags: readonly string[];
  /** ttlMs undefined = the default length. */
  readonly retention: { readonly kind: "leased"; readonly ttlMs: number | undefined } | { readonly kind: "standing" };
  readonly offer: Offer;
  readonly etag: string;
  readonly requestId: string;
  readonly validateOnly: boolean;
  readonly allowEmpty: boolean;
  readonly strict: boolean;
  /** Name of an upstream credential; empty = none. */
  readonly credential: string;
  readonly sharePrivate: boolean;
  readonly probing: Probing;
}

export interface ToolOutcome {
  readonly name: string;
  readonly outcome: "accepted" | "unchanged" | "rejected";
  readonly reasons: readonly string[];
  readonly digest: string;
  /** What there is to mend; nothing is refused for it. */
  readonly warnings?: readonly QualityWarning[];
}

export interface LeaseGrant {
  readonly leaseId: string;
  readonly ttlMs: number;
  readonly renewAfterMs: number;
}

export interface RegisterOutput {
  readonly position: Position;
  readonly setDigest: string;
  readonly lease: LeaseGrant | undefined;
  readonly tools: readonly ToolOutcome[];
  readonly etag: string;
  readonly pending: boolean;
}

export type RenewState = "ok" | "superseded" | "register-again" | "unknown-lease" | "deregistered";

export interface RenewOutput {
  readonly leaseId: string;
  readonly state: RenewState;
  readonly renewAfterMs: number;
}

export type DeregisterTarget =
  | { readonly kind: "lease"; readonly leaseId: string }
  | { readonly kind: "server"; readonly serverId: string }
  | { readonly kind: "tool"; readonly toolId: string }
  | { readonly kind: "none" };

export interface DeregisterOutput {
  /** Undefined when nothing was there to remove. */
  readonly position: Position | undefined;
  readonly removed: boolean;
}

export interface StubsQuery {
  readonly filter: Filter;
  /** 0 = default. */
  readonly pageSize: number;
  readonly pageToken: string;
  readonly minRevision: string;
  readonly ifRevision: string;
}

export interface StubsPage {
  /**
   * Runs of frames: one after the other they are a valid part of a GetStubsResponse. Views of what the catalogue holds, never
   * to be written to: whoever answers puts them together, once.
   */
  readonly frames: readonly Uint8Array[];
  readonly nextPageToken: string;
  readonly position: Position;
  readonly notModified: boolean;
  readonly stale: boolean;
}

export interface ServersPage {
  readonly servers: readonly ServerRecord[];
  readonly nextPageToken: string;
  readonly position: Position;
  readonly stale: boolean;
}

/** One server as this replica holds it. */
export interface ServerRead {
  readonly server: ServerRecord;
  readonly position: Position;
  readonly stale: boolean;
}

export interface IsolateInput {
  /** Empty = default. */
  readonly namespace: string;
  readonly serverId: string;
  /** For everybody who finds the server isolated. */
  readonly why: string;
}

/** Empty namespace = default. */
export type ServerName = Pick<IsolateInput, "namespace" | "serverId">;

/** A server as an operator's call left it; the position is that of its last change. */
export interface ServerWrite {
  readonly server: ServerRecord;
  readonly position: Position;
}

export interface ResumeOutput extends ServerWrite {
  /** Whether it was isolated before. */
  readonly resumed: boolean;
}

export interface RefreshOutput extends ServerWrite {
  /** Tools on the list just read, rejected ones among them. */
  readonly listed: number;
  /** Whether the server's record changed meanwhile. */
  readonly changed: boolean;
}

/** What a replica that looks after a server knows of it beyond the published record. */
export interface LiveHealth {
  readonly halfOpen: boolean;
  /** ms since the epoch; undefined: nobody looks. */
  readonly nextProbeMs: number | undefined;
}

/** Why this replica acts with care now. */
export interface Notice {
  readonly kind: "brake" | "panic" | "healing";
  /** For operators. */
  readonly message: string;
  /** ms since the epoch. */
  readonly sinceMs: number;
}

export type SchemaView = "full" | "input-only" | "compact";
export type Freshness = "live" | "cached" | "stale";
export type SchemaKey =
  | { readonly kind: "tool"; readonly toolId: string }
  | { readonly kind: "digest"; readonly digest: string };

export interface FullSchema {
  /** Empty when asked by digest. */
  readonly toolId: string;
  readonly definition: Uint8Array;
  readonly digest: string;
  readonly freshness: Freshness;
  readonly fetchedAtMs: number;
}

export type SchemaResult =
  | { readonly kind: "schema"; readonly schema: FullSchema }
  | { readonly kind: "fault"; readonly fault: Fault };

/** One event for a watcher: a tool's, or a server's AVAILABILITY_CHANGED. */
export interface WatchEvent {
  readonly type: "REGISTERED" | "UPDATED" | "DEREGISTERED" | "EXPIRED" | "SCHEMA_INVALIDATED" | "AVAILABILITY_CHANGED" | "QUARANTINED" | "RELEASED";
  readonly serverId: string;
  /** Empty for AVAILABILITY_CHANGED. */
  readonly toolName: string;
  /** The tool now; undefined when it is gone. */
  readonly tool: Tool | undefined;
  readonly availability: Availability;
  readonly oldDigest: string;
  readonly newDigest: string;
}

/** Encodes watch messages; implemented by the transport's side with protobuf. Each call makes one whole WatchResponse. */
export interface WatchCodec {
  /** `frames` are GetStubsResponse/SnapshotChunk field-1 elements (same tag). */
  snapshot(frames: readonly Uint8Array[], last: { token: string } | undefined, revision: string): Uint8Array;
  /** Encodes one event as an element of Change.events, so that a change can be split by size. */
  event(event: WatchEvent): Uint8Array;
  change(events: readonly Uint8Array[], token: string, revision: string, atMs: number): Uint8Array;
  bookmark(token: string, revision: string): Uint8Array;
}

/** Where a watcher's messages go. */
export interface WatchSink {
  /** Answers false when the transport's buffer is full: write nothing more until `drained` is called. */
  write(message: Uint8Array): boolean;
  /** Ends the stream with a fault. */
  fail(fault: Fault): void;
}

export interface WatchHandle {
  /** The transport's buffer has emptied. */
  drained(): void;
  /** The client is gone. Nothing is written after it. */
  close(): void;
}

export interface WatchInput {
  readonly filter: Filter;
  readonly resumeToken: string;
  readonly minRevision: string;
}

/** The lazy loader as the registry calls it. */
export interface SchemaLoader {
  /** The definition if memory holds it, at once; otherwise undefined. Throws Fault NOT_FOUND. */
  held(q: { readonly namespace: string; readonly key: SchemaKey; readonly view: SchemaView }): FullSchema | undefined;
  /**
   * One definition. `deadlineMs` is the time that the caller still has: undefined means LIMITS.loadCallerMs, and more than
   * LIMITS.loadMs is never waited. Throws Fault NOT_FOUND, LOAD_PENDING (the load goes on, and fills memory and store),
   * LOAD_FAILED or DIGEST_MISMATCH. What memory holds is answered without a store call, whatever the deadline.
   */
  full(q: {
    readonly namespace: string;
    readonly key: SchemaKey;
    readonly view: SchemaView;
    readonly deadlineMs: number | undefined;
  }): Promise<FullSchema>;
  /**
   * Like `full` for each tool_id, side by side, in order, repeats allowed. Together at most LIMITS.batchBytes: each tool that
   * does not fit any more gets Fault QUOTA_EXCEEDED. Throws Fault INVALID_REQUEST for more than LIMITS.batchTools.
   */
  batch(q: {
    readonly namespace: string;
    readonly toolIds: readonly string[];
    readonly view: SchemaView;
    readonly deadlineMs: number | undefined;
    /** Asked for each tool whose definition memory does not hold: the fault that it gets instead of being loaded, if any. */
    readonly refuse?: () => Fault | undefined;
  }): Promise<readonly SchemaResult[]>;
}

/** What every transport calls. */
export interface RegistryApi {
  /** Grows whenever an answer from memory may have become another one: while it stands, the same read is answered alike. */
  readonly version: number;
  /** What writes takes the caller, whose ownership is judged; without one the caller is everybody. */
  register(input: RegisterInput, caller?: Principal): Promise<RegisterOutput>;
  renew(
    namespace: string,
    leases: readonly { leaseId: string; setDigest: string }[],
    caller?: Principal,
  ): Promise<readonly RenewOutput[]>;
  deregister(namespace: string, target: DeregisterTarget, caller?: Principal): Promise<DeregisterOutput>;
  /** Takes a server out until `resume`; isolating it again changes by whom and why. */
  isolate(input: IsolateInput, caller?: Principal): Promise<ServerWrite>;
  /** Puts an isolated server back; one that is not isolated stays as it is. */
  resume(name: ServerName, caller?: Principal): Promise<ResumeOutput>;
  /** Lists a server now. Throws SERVER_ISOLATED, and LOAD_FAILED with the cause. */
  refresh(name: ServerName, caller?: Principal): Promise<RefreshOutput>;
  /** Lays other words over the labels of one server's tools, in one revision. */
  approveOverlays(input: ApproveInput, caller?: Principal): Promise<ApproveOutput>;
  /** Shows the registrant's own labels again. What is not there is passed over. */
  withdrawOverlays(input: WithdrawInput, caller?: Principal): Promise<WithdrawOutput>;
  /** Withholds a tool until a definition of it is approved. */
  quarantineTool(input: QuarantineInput, caller?: Principal): Promise<QuarantineOutput>;
  /** Lists a quarantined tool while its definition is the approved one; one that was never quarantined stays as it is. */
  approveTool(input: ApproveToolInput, caller?: Principal): Promise<ApproveToolOutput>;
  /** Empty namespace = default; no server_ids = all that are registered. */
  overlays(q: { readonly namespace: string; readonly serverIds: readonly string[] }): Promise<OverlaysOutput>;
  stubs(query: StubsQuery): Promise<StubsPage>;
  servers(q: { namespace: string; pageSize: number; pageToken: string; minRevision: string }): Promise<ServersPage>;
  server(q: { namespace: string; serverId: string; minRevision: string }): Promise<ServerRead>;
  /** How well tools are described, from memory. Throws NOT_FOUND for a server that is not there. */
  lint(q: LintQuery): Promise<LintOutput>;
  /** Undefined where another replica looks after the server, or nobody does. */
  health(namespace: string, serverId: string): LiveHealth | undefined;
  notices(namespace: string): readonly Notice[];
  schema(q: {
    namespace: string;
    key: SchemaKey;
    view: SchemaView;
    minRevision: string;
    /** Time the caller still has, ms; undefined = none said. */
    deadlineMs: number | undefined;
  }): Promise<{ schema: FullSchema; position: Position; stale: boolean }>;
  schemas(q: {
    namespace: string;
    toolIds: readonly string[];
    view: SchemaView;
    minRevision: string;
    deadlineMs: number | undefined;
  }): Promise<{ results: readonly SchemaResult[]; position: Position; stale: boolean }>;
  /** The caller's watches are counted. Resolves when the watch is admitted; from then on the sink is written to until the handle closes or the sink is failed. */
  watch(input: WatchInput, sink: WatchSink, caller?: Principal): Promise<WatchHandle>;
}
