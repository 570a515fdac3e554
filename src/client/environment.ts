import type { Target } from "./target.js";
import { parseTarget } from "./target.js";

/** The registry to use: the one given, else `TOOLCRIB_URL`, else 127.0.0.1:7850. Throws TargetError. */
export function registryTarget(given: string | undefined): Target {
  // The registrar lives in other people's programs, where this variable is its whole configuration.
  return parseTarget(given ?? process.env["TOOLCRIB_URL"]);
}
