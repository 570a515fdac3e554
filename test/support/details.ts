/** What a failed call tells besides its code and sentence. */
import type { ServiceError } from "@grpc/grpc-js";
import { fromBinary } from "@bufbuild/protobuf";
import { anyUnpack, durationMs } from "@bufbuild/protobuf/wkt";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "../../src/gen/google/rpc/error_details_pb.js";
import { StatusSchema } from "../../src/gen/google/rpc/status_pb.js";
import { SubstitutesSchema } from "../../src/gen/toolcrib/v1/error_pb.js";

export interface Details {
  /** grpc.status. */
  readonly code: number;
  readonly message: string;
  /** A value of ErrorReason without its prefix; empty when the failure is not the registry's. */
  readonly reason: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly retryMs: number | undefined;
  readonly substitutes: readonly string[];
  readonly violations: readonly { field: string; description: string }[];
}

export function detailsOf(error: ServiceError): Details {
  const raw = error.metadata?.get("grpc-status-details-bin")[0];
  const parts = raw === undefined ? [] : fromBinary(StatusSchema, raw as Buffer).details;
  const one = <T>(found: (T | undefined)[]): T | undefined => found.find((d) => d !== undefined);
  const info = one(parts.map((p) => anyUnpack(p, ErrorInfoSchema)));
  const retry = one(parts.map((p) => anyUnpack(p, RetryInfoSchema)))?.retryDelay;
  return {
    code: error.code,
    message: error.details,
    reason: info?.reason ?? "",
    metadata: info?.metadata ?? {},
    retryMs: retry && durationMs(retry),
    substitutes: one(parts.map((p) => anyUnpack(p, SubstitutesSchema)))?.toolIds ?? [],
    violations: one(parts.map((p) => anyUnpack(p, BadRequestSchema)))?.fieldViolations ?? [],
  };
}

/** The details of a call that has to fail. */
export async function refusalOf(call: Promise<unknown>): Promise<Details> {
  const answer = await call.catch((error: ServiceError) => {
    if (error.code === undefined) throw error;
    return detailsOf(error);
  });
  if (typeof answer === "object" && answer !== null && "reason" in answer && "violations" in answer)
    return answer as Details;
  throw new Error(`it should have been refused, and was answered ${JSON.stringify(answer)}`);
}
