import { Metadata } from "@grpc/grpc-js";
import { asBuffer } from "../answers.js";
import type { WireError } from "../errors.js";

export const DETAILS_KEY = "grpc-status-details-bin";

export interface GrpcStatus {
  readonly code: number;
  readonly details: string;
  readonly metadata: Metadata;
}

export function toGrpcStatus(error: WireError): GrpcStatus {
  const metadata = new Metadata();
  metadata.set(DETAILS_KEY, asBuffer(error.details));
  return { code: error.code, details: error.message, metadata };
}
