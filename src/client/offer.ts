import type { MessageInitShape } from "@bufbuild/protobuf";
import { readDefinition } from "../domain/definition.js";
import { deriveLabel } from "../domain/label.js";
import { LIMITS } from "../domain/limits.js";
import type { DeclaredToolSchema } from "../gen/toolcrib/v1/registry_service_pb.js";

export type DeclaredToolInit = MessageInitShape<typeof DeclaredToolSchema>;

/** What a registrant adds to the label that follows from a tool's definition. Rules as in `toolcrib.v1.Stub`. */
export interface ToolDefaults {
  readonly title?: string;
  readonly briefDescription?: string;
  readonly tags?: readonly string[];
  readonly keywords?: readonly string[];
  readonly useWhen?: string;
  readonly schemaUri?: string;
  readonly substitutes?: readonly string[];
}

/** Whether the definitions travel with the stubs, or the registry fetches them when somebody first asks. */
export type Carriage = "digests" | "inline";

/** Definitions that travel in one Register; leaves room for the stubs under the limit of a message. */
const INLINE_BYTES = LIMITS.messageBytes - 1024 * 1024;

/**
 * Declares tools from their definitions as the server sends them. A definition that cannot be read travels as it is, so
 * that the registry names in its answer, and in the server's status, what is wrong with it. Where the definitions are too
 * many for one message, the last ones are left for the registry to fetch.
 */
export function declareTools(
  definitions: readonly Uint8Array[],
  carriage: Carriage,
  defaults: Readonly<Record<string, ToolDefaults>> = {},
): DeclaredToolInit[] {
  let room = carriage === "inline" ? INLINE_BYTES : 0;
  return definitions.map((bytes) => {
    room -= bytes.byteLength;
    return declareTool(bytes, room >= 0 ? carriage : "digests", defaults);
  });
}

function declareTool(
  bytes: Uint8Array,
  carriage: Carriage,
  defaults: Readonly<Record<string, ToolDefaults>>,
): DeclaredToolInit {
  const read = readDefinition(bytes);
  if (!read.ok) return { definition: bytes };
  const { name, digest } = read.definition;
  const own = Object.hasOwn(defaults, name) ? defaults[name] : undefined;
  const extras = own ? extrasOf(own) : {};
  if (carriage === "inline") return { definition: bytes, ...(own ? { stub: { name, ...extras } } : {}) };
  const label = deriveLabel(read.definition);
  const { title, briefDescription, hints } = label;
  return { stub: { name, title, briefDescription, hints, digest, ...extras } };
}

function extrasOf(given: ToolDefaults) {
  const { title, briefDescription, tags, keywords, useWhen, schemaUri, substitutes } = given;
  return {
    ...(title === undefined ? {} : { title }),
    ...(briefDescription === undefined ? {} : { briefDescription }),
    ...(tags === undefined ? {} : { tags: [...tags] }),
    ...(keywords === undefined ? {} : { keywords: [...keywords] }),
    ...(useWhen === undefined ? {} : { useWhen }),
    ...(schemaUri === undefined ? {} : { schemaUri }),
    ...(substitutes === undefined ? {} : { substitutes: [...substitutes] }),
  };
}
