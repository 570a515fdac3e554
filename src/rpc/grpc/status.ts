import { Metadata } from "@grpc/grpc-js";
import type { Logger } from "../../catalogue/ports.js";
import { asBuffer } from "../answers.js";
import { type WireError, statusBytes } from "../errors.js";
import { logRefusal } from "../observe.js";

export const DETAILS_KEY = "grpc-status-details-bin";

export interface GrpcStatus {
  readonly code: number;
  readonly details: string;
  readonly metadata: Metadata;
}

export function toGrpcStatus(error: WireError): GrpcStatus {
  const metadata = new Metadata();
  metadata.set(DETAILS_KEY, asBuffer(statusBytes(error)));
  return { code: error.code, details: error.message, metadata };
}

/** Logs why a call was refused and makes its status. */
export function refuse(log: Logger, method: string, peer: string, thrown: unknown): GrpcStatus {
  return toGrpcStatus(logRefusal(log, method, peer, thrown));
}
