import { definitionDigest } from "../../domain/digest.js";
import { LIMITS } from "../../domain/limits.js";

/** A definition under the digest that its registry gave it. */
export interface StoredDefinition {
  /** `sha256:` and 64 hex digits. */
  readonly digest: string;
  /** UTF-8 JSON text of the whole MCP tool object. */
  readonly bytes: Uint8Array;
}

/**
 * Definitions that outlive a process or are shared by several. A digest names one definition for ever, so whatever is stored
 * under it can be shared by agents of any namespace and registry; the loader checks what it reads, so nobody has to be
 * trusted with writing. Every method may reject: the loader goes on without, and tells of it.
 */
export interface DefinitionStore {
  /** In the order asked; undefined for what is not here. */
  get(digests: readonly string[]): Promise<readonly (Uint8Array | undefined)[]>;
  put(definitions: readonly StoredDefinition[]): Promise<void>;
  /** Takes away what was found damaged. */
  drop(digest: string): Promise<void>;
  close(): Promise<void>;
}

/** Whether these bytes are a definition with this digest. Never throws, whatever the bytes are. */
export function hasDigest(bytes: Uint8Array, digest: string): boolean {
  if (bytes.byteLength > LIMITS.definitionBytes) return false;
  try {
    return definitionDigest(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes)) === digest;
  } catch {
    return false; // Neither text nor JSON, so no definition at all.
  }
}
