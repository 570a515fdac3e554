/** Arguments before they go on the wire: their shape, size and depth. */
import { LIMITS } from "../../domain/limits.js";

/** Why arguments are not sent, whatever the definition says; undefined = they may be. */
export function argumentsProblem(args: unknown): { readonly reason: "arguments" | "too-large"; readonly text: string } | undefined {
  if (args === undefined) return undefined;
  if (typeof args !== "object" || args === null || Array.isArray(args)) {
    const is = args === null ? "null" : Array.isArray(args) ? "an array" : `a ${typeof args}`;
    const json = typeof args === "string" && args.trimStart().startsWith("{") ? ": give the JSON object itself, not a text that holds it" : "";
    return { reason: "arguments", text: `the arguments must be a JSON object, but are ${is}${json}` };
  }
  const depth = depthOf(args, LIMITS.callArgumentDepth);
  if (depth > LIMITS.callArgumentDepth) {
    return { reason: "arguments", text: `the arguments nest deeper than ${LIMITS.callArgumentDepth} levels: flatten them` };
  }
  const bytes = Buffer.byteLength(JSON.stringify(args));
  if (bytes <= LIMITS.callArgumentBytes) return undefined;
  return { reason: "too-large", text: `the arguments have ${bytes} bytes, the limit is ${LIMITS.callArgumentBytes}: send less at once` };
}

/** At most one more than `enough`. Level by level, so that depth costs no stack. */
function depthOf(value: unknown, enough: number): number {
  let level: readonly unknown[] = [value];
  let depth = 0;
  while (level.length > 0 && depth <= enough) {
    const inside = level.filter((one): one is object => typeof one === "object" && one !== null);
    if (inside.length === 0) return depth;
    depth++;
    level = inside.flatMap((one) => Object.values(one));
  }
  return depth;
}
