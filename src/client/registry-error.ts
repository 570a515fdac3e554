import { fromBinary } from "@bufbuild/protobuf";
import type { Any } from "@bufbuild/protobuf/wkt";
import { durationMs } from "@bufbuild/protobuf/wkt";
import { status as Code } from "@grpc/grpc-js";
import type { ServiceError } from "@grpc/grpc-js";
import type { Violation } from "../domain/fault.js";
import type { ErrorReasonName } from "../domain/reasons.js";
import { STATUS_OF } from "../domain/reasons.js";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "../gen/google/rpc/error_details_pb.js";
import { StatusSchema } from "../gen/google/rpc/status_pb.js";
import { SubstitutesSchema } from "../gen/toolcrib/v1/error_pb.js";

/** Name of a gRPC status, such as `UNAVAILABLE`. */
export type CodeName = keyof typeof Code;

/** A registry's reason, or `""` where the answer came from something else: the network, a proxy, the client's deadline. */
export type Reason = ErrorReasonName | "";

/** A failed call, with everything the registry said about it. */
export class RegistryError extends Error {
  readonly code: CodeName;
  readonly reason: Reason;
  readonly metadata: Readonly<Record<string, string>>;
  readonly violations: readonly Violation[];
  /** Wait at least this long before asking again; undefined where the registry named no time. */
  readonly retryAfterMs: number | undefined;
  /** Tools that can stand in for the one asked for. */
  readonly substitutes: readonly string[];

  constructor(message: string, facts: RegistryErrorFacts) {
    super(message, { cause: facts.cause });
    this.name = "RegistryError";
    this.code = facts.code;
    this.reason = facts.reason ?? "";
    this.metadata = facts.metadata ?? {};
    this.violations = facts.violations ?? [];
    this.retryAfterMs = facts.retryAfterMs;
    this.substitutes = facts.substitutes ?? [];
  }

  /** Whether the same call may succeed later without a change by the caller. */
  get transient(): boolean {
    return TRANSIENT.has(this.code) && this.reason !== "MESSAGE_TOO_LARGE" && !/larger than max/i.test(this.message);
  }
}

export interface RegistryErrorFacts {
  readonly code: CodeName;
  readonly reason?: Reason;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly violations?: readonly Violation[];
  readonly retryAfterMs?: number | undefined;
  readonly substitutes?: readonly string[];
  readonly cause?: unknown;
}

const TRANSIENT: ReadonlySet<CodeName> = new Set([
  "UNAVAILABLE",
  "DEADLINE_EXCEEDED",
  "RESOURCE_EXHAUSTED",
  "ABORTED",
  "INTERNAL",
  "UNKNOWN",
  "CANCELLED",
]);

/** Turns what grpc-js throws into a RegistryError; details that cannot be read are left out, the message stays. */
export function registryError(error: unknown): RegistryError {
  if (error instanceof RegistryError) return error;
  if (!isServiceError(error)) {
    return new RegistryError(error instanceof Error ? error.message : String(error), { code: "UNKNOWN", cause: error });
  }
  const code = (Code[error.code] ?? "UNKNOWN") as CodeName;
  const raw = error.metadata?.get("grpc-status-details-bin")[0];
  const facts: Mutable<RegistryErrorFacts> = { code, cause: error };
  if (raw instanceof Uint8Array) readDetails(raw, facts);
  return new RegistryError(error.details || error.message, facts);
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

function readDetails(raw: Uint8Array, into: Mutable<RegistryErrorFacts>): void {
  for (const detail of attempt(() => fromBinary(StatusSchema, raw))?.details ?? [])
    attempt(() => readDetail(detail, into));
}

function readDetail(detail: Any, into: Mutable<RegistryErrorFacts>): void {
  switch (detail.typeUrl.slice(detail.typeUrl.lastIndexOf("/") + 1)) {
    case ErrorInfoSchema.typeName: {
      const info = fromBinary(ErrorInfoSchema, detail.value);
      if (info.domain !== "toolcrib") return;
      if (Object.hasOwn(STATUS_OF, info.reason)) into.reason = info.reason as ErrorReasonName;
      into.metadata = info.metadata;
      return;
    }
    case RetryInfoSchema.typeName: {
      const delay = fromBinary(RetryInfoSchema, detail.value).retryDelay;
      if (delay) into.retryAfterMs = durationMs(delay);
      return;
    }
    case BadRequestSchema.typeName:
      into.violations = fromBinary(BadRequestSchema, detail.value).fieldViolations.map((v) => ({
        field: v.field,
        description: v.description,
      }));
      return;
    case SubstitutesSchema.typeName:
      into.substitutes = fromBinary(SubstitutesSchema, detail.value).toolIds;
  }
}

/** Details come from the network: one that cannot be read must not hide the error that it belongs to. */
function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

function isServiceError(error: unknown): error is ServiceError {
  return error instanceof Error && typeof (error as Partial<ServiceError>).code === "number";
}
