/** What of a toolset can be seen now. */
import { createHash } from "node:crypto";
import type { Catalogue } from "./catalogue.js";
import type { Toolset } from "./words.js";

/**
 * The tools that are always included, then the loaded ones, in their order; without those that the registry has no more or withholds, and
 * those whose server is away. As long as the registry was never reached, all.
 */
export function visibleTools({ toolIds }: Toolset, always: readonly string[], catalogue: Catalogue): string[] {
  const all = [...new Set([...always, ...toolIds])];
  return catalogue.known ? all.filter((id) => catalogue.standing(id) === "here") : all;
}

/** Differs where a client's list of tools has changed. */
export function fingerprint(visible: readonly string[], map: string, catalogue: Catalogue): string {
  const hash = createHash("sha256").update(map);
  for (const id of visible) hash.update(`\n${id} ${catalogue.tool(id)?.digest ?? ""}`);
  return hash.digest("base64url").slice(0, 22);
}
