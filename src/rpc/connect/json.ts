/** Messages as JSON: read strictly, and with definitions that a person can read. */
import { type DescMessage, type Message, type MessageShape, fromBinary, fromJson, isMessage } from "@bufbuild/protobuf";
import type { JsonValue } from "@bufbuild/protobuf";
import { Fault } from "../../domain/fault.js";
import { FindToolsResponseSchema } from "../../gen/toolcrib/v1/gate_service_pb.js";
import {
  BatchGetFullSchemasResponseSchema,
  type FullSchema,
  GetFullSchemaResponseSchema,
} from "../../gen/toolcrib/v1/registry_service_pb.js";
import { asBuffer } from "../answers.js";

const UTF8 = new TextDecoder("utf-8", { fatal: true });
/** Half of a pair written as an escape: the only way in which JSON can hold text that is not UTF-8. */
const SURROGATE_ESCAPE = /\\u[dD][89a-fA-F]/;

/**
 * Throws MALFORMED_MESSAGE when the bytes are not a message of this type. A field that the type does not have is refused, not
 * ignored: it is a typing mistake more often than anything else.
 */
export function decodeJson<S extends DescMessage>(schema: S, bytes: Uint8Array): MessageShape<S> {
  const value = parse(schema, bytes);
  try {
    return fromJson(schema, value, { ignoreUnknownFields: false });
  } catch (cause) {
    throw malformed(schema, placeOf(cause));
  }
}

function parse(schema: DescMessage, bytes: Uint8Array): JsonValue {
  if (bytes.byteLength === 0) throw malformed(schema, "the body is empty, {} is the shortest request");
  let text: string;
  try {
    text = UTF8.decode(bytes);
  } catch {
    throw malformed(schema, "it holds text that is not UTF-8");
  }
  let value: JsonValue;
  try {
    value = JSON.parse(text) as JsonValue;
  } catch (cause) {
    throw malformed(schema, `it is not JSON${/ at position \d+/.exec(String(cause))?.[0] ?? ""}`);
  }
  if (SURROGATE_ESCAPE.test(text) && hasLoneSurrogate(text))
    throw malformed(schema, "it holds text that is not UTF-8: half of a surrogate pair");
  return value;
}

function hasLoneSurrogate(text: string): boolean {
  let found = false;
  JSON.parse(text, (key, value: unknown) => {
    found ||= /\p{Surrogate}/u.test(key) || (typeof value === "string" && /\p{Surrogate}/u.test(value));
    return value;
  });
  return found;
}

/** Without a cause: the libraries' own words quote values, and a value may be a secret. */
function malformed(schema: DescMessage, why: string): Fault {
  return new Fault("MALFORMED_MESSAGE", `the request is not a ${schema.typeName} in JSON: ${why}`);
}

/** Where the library stopped, and why as far as that can be told without the value. */
function placeOf(cause: unknown): string {
  const words = String(cause);
  const unknown = /key "([^"]{1,100})" is unknown/.exec(words)?.[1];
  const place = /cannot decode (?:field|message|map entry|list item)? ?([A-Za-z0-9_.]{1,200})/.exec(words)?.[1];
  if (unknown !== undefined) return `${place ?? "the message"} has no field ${JSON.stringify(unknown)}`;
  return place === undefined ? "a value does not fit its field" : `the value of ${place} does not fit it`;
}

/** An encoded answer as a message; for JSON with its definitions as text too. */
export function toAnswer(schema: DescMessage, bytes: Uint8Array, json: boolean): Message {
  const message = fromBinary(schema, bytes);
  if (json) for (const one of schemasOf(message)) one.definitionJson = asBuffer(one.definition).toString("utf8");
  return message;
}

function schemasOf(message: Message): FullSchema[] {
  if (isMessage(message, GetFullSchemaResponseSchema)) return message.schema ? [message.schema] : [];
  if (isMessage(message, FindToolsResponseSchema))
    return message.tools.flatMap(({ schema }) => (schema.case === "definition" ? [schema.value] : []));
  if (!isMessage(message, BatchGetFullSchemasResponseSchema)) return [];
  return message.results.flatMap(({ result }) => (result.case === "schema" ? [result.value] : []));
}
