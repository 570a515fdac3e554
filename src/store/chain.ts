import { createHash } from "node:crypto";

/**
 * Links an entry to all before it: 16 hex digits over the chain before, the revision and the body. The first entry mixes
 * in a random seed, so that two histories that began with equal changes still differ. `redis/commit.lua` computes the same.
 */
export function chainOf(prev: string, revision: number, body: Uint8Array, seed: string): string {
  const hash = createHash("sha1");
  if (revision === 1) hash.update(seed);
  return hash.update(`${prev}${revision}`).update(body).digest("hex").slice(0, 16);
}
