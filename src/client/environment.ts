import { accessFrom } from "./access.js";
import type { Target } from "./target.js";
import { parseTarget } from "./target.js";

/**
 * The registry to use: the one given, else `TOOLCRIB_URL`, else 127.0.0.1:7850; with the token and certificates that the
 * environment names. Throws TargetError and AccessError.
 */
export function registryTarget(given: string | undefined): Target {
  // The registrar lives in other people's programs, where these variables are its whole configuration.
  return { ...parseTarget(given ?? process.env["TOOLCRIB_URL"]), access: accessFrom(process.env) };
}
