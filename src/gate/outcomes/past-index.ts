/** The note that names a namespace's key and the version of each of its shards, so that one look tells whether anything changed. */
import { SHARDS } from "./shard.js";

export interface PastIndex {
  /**
   * What words and callers are hashed with. It keeps what is stored from being read by whoever sees a shard or a hash elsewhere; it
   * stands beside them in the same store, so it hides nothing from who can read the whole store.
   */
  readonly key: string;
  /** By shard; 0 = never written. */
  readonly versions: readonly number[];
}

export type DecodedIndex =
  | { readonly kind: "index"; readonly index: PastIndex }
  | { readonly kind: "unusable" }
  /** Written by a newer replica. */
  | { readonly kind: "newer" };

const VERSION = 1;
const KEY_BYTES = 16;
const HEAD_BYTES = 4 + KEY_BYTES;

/** The key is 32 hex digits. */
export function encodeIndex({ key, versions }: PastIndex): Uint8Array {
  const bytes = Buffer.alloc(HEAD_BYTES + 8 * SHARDS);
  bytes.writeUInt32LE(VERSION, 0);
  bytes.write(key, 4, KEY_BYTES, "hex");
  for (const [i, version] of versions.entries()) bytes.writeDoubleLE(version, HEAD_BYTES + 8 * i);
  return bytes;
}

export function decodeIndex(given: Uint8Array): DecodedIndex {
  const bytes = Buffer.from(given.buffer, given.byteOffset, given.byteLength);
  if (bytes.byteLength >= 4 && bytes.readUInt32LE(0) > VERSION) return { kind: "newer" };
  if (bytes.byteLength !== HEAD_BYTES + 8 * SHARDS) return { kind: "unusable" };
  const key = bytes.toString("hex", 4, HEAD_BYTES);
  const versions = Array.from({ length: SHARDS }, (_, i) => bytes.readDoubleLE(HEAD_BYTES + 8 * i));
  return { kind: "index", index: { key, versions } };
}
