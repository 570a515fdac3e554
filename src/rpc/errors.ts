/** Faults as callers of any protocol see them: a code, a sentence, and machine-readable details. */
import { randomBytes } from "node:crypto";
import { type DescMessage, type Message, type MessageShape, create, toBinary } from "@bufbuild/protobuf";
import { anyPack, durationFromMs } from "@bufbuild/protobuf/wkt";
import { Fault } from "../domain/fault.js";
import type { Violation } from "../domain/fault.js";
import type { StatusName } from "../domain/reasons.js";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "../gen/google/rpc/error_details_pb.js";
import { StatusSchema } from "../gen/google/rpc/status_pb.js";
import { SubstitutesSchema } from "../gen/toolcrib/v1/error_pb.js";

/** google.rpc.Code by name. */
export const CODE_OF: Readonly<Record<StatusName, number>> = {
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  UNAUTHENTICATED: 16,
};

/**
 * Errors travel in HTTP/2 trailers, which several clients cap at 8 KiB. The details are base64 on the wire (× 4/3) and the
 * message is percent-encoded, so both are cut to fit together.
 */
const DETAILS_BYTES = 4_500;
const MESSAGE_BYTES = 1_200;
const VALUE_CHARS = 300;
/** A resume token must come through whole. */
const METADATA_CHARS = 600;
const SUBSTITUTES = 8;

export interface WireError {
  /** google.rpc.Code. */
  readonly code: number;
  readonly message: string;
  readonly details: readonly ErrorDetail[];
}

export interface ErrorDetail {
  readonly desc: DescMessage;
  readonly value: Message;
}

/** An encoded google.rpc.Status. */
export function statusBytes({ code, message, details }: WireError): Uint8Array {
  const packed = details.map(({ desc, value }) => anyPack(desc, value));
  return toBinary(StatusSchema, create(StatusSchema, { code, message, details: packed }));
}

/** A fault for the caller; `incident` is set when it was not one already, and so is a bug. */
export interface Refusal {
  readonly fault: Fault;
  readonly incident: string | undefined;
}

/** Whatever was thrown, as a fault. What is not a Fault says nothing of itself but an incident id; its cause is for the log. */
export function refusalOf(thrown: unknown): Refusal {
  if (thrown instanceof Fault && thrown.reason !== "INTERNAL") return { fault: thrown, incident: undefined };
  const incident = randomBytes(8).toString("hex");
  const message = `internal error; the registry's log has more under incident ${incident}`;
  return { fault: new Fault("INTERNAL", message, { metadata: { incident }, cause: thrown }), incident };
}

export function wireError(fault: Fault): WireError {
  const code = CODE_OF[fault.status];
  const message = fitMessage(fault.message);
  const details = [detail(ErrorInfoSchema, create(ErrorInfoSchema, errorInfo(fault)))];
  if (fault.retryAfterMs !== undefined) {
    const retryDelay = durationFromMs(Math.max(0, Math.ceil(fault.retryAfterMs)));
    details.push(detail(RetryInfoSchema, create(RetryInfoSchema, { retryDelay })));
  }
  if (fault.substitutes.length > 0) {
    const toolIds = fault.substitutes.slice(0, SUBSTITUTES).map((id) => fitValue(id));
    details.push(detail(SubstitutesSchema, create(SubstitutesSchema, { toolIds })));
  }
  if (fault.violations.length > 0) {
    const used = details.reduce((sum, d) => sum + encodedBytes(d), message.length);
    const fieldViolations = fitViolations(fault.violations, DETAILS_BYTES - used);
    details.push(detail(BadRequestSchema, create(BadRequestSchema, { fieldViolations })));
  }
  return { code, message, details };
}

function errorInfo(fault: Fault): { reason: string; domain: string; metadata: Record<string, string> } {
  const metadata = Object.fromEntries(
    Object.entries(fault.metadata).map(([key, value]) => [key, fitValue(value, METADATA_CHARS)]),
  );
  return { reason: fault.reason, domain: "toolcrib", metadata };
}

function detail<D extends DescMessage>(desc: D, value: MessageShape<D>): ErrorDetail {
  return { desc, value };
}

/** Inside a Status, with its type's URL. */
function encodedBytes({ desc, value }: ErrorDetail): number {
  return toBinary(desc, value).byteLength + "type.googleapis.com/".length + desc.typeName.length;
}

/** As many as fit, and then how many more there are. */
function fitViolations(violations: readonly Violation[], budget: number): Violation[] {
  const kept: Violation[] = [];
  let left = budget - 100;
  for (const violation of violations) {
    const field = fitValue(violation.field);
    const description = fitValue(violation.description);
    left -= Buffer.byteLength(field) + Buffer.byteLength(description) + 12;
    if (left < 0) break;
    kept.push({ field, description });
  }
  const more = violations.length - kept.length;
  if (more > 0) kept.push({ field: "", description: `and ${more} more violations that do not fit into an error` });
  return kept;
}

/** Well-formed (lone surrogates replaced), and short enough percent-encoded. */
function fitMessage(text: string): string {
  const whole = wellFormed(text.slice(0, MESSAGE_BYTES));
  if (encodeURI(whole).length <= MESSAGE_BYTES) return whole;
  return wellFormed(`${text.slice(0, MESSAGE_BYTES / 12)}…`);
}

function fitValue(text: string, chars = VALUE_CHARS): string {
  return wellFormed(text.length > chars ? `${text.slice(0, chars)}…` : text);
}

function wellFormed(text: string): string {
  return Buffer.from(text, "utf8").toString("utf8");
}
