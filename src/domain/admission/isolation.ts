import type { Violation } from "../fault.js";
import { LIMITS } from "../limits.js";
import { nameViolations } from "./names.js";
import { textViolation } from "./text.js";

/** What is wrong with the name of a server; an empty namespace is the default one. */
export function checkServerName(namespace: string, serverId: string): Violation[] {
  return [
    ...(namespace === "" ? [] : nameViolations("namespace", "namespace", namespace)),
    ...nameViolations("server_id", "server_id", serverId),
  ];
}

/** What is wrong with an isolation, all at once. */
export function checkIsolation(input: { namespace: string; serverId: string; why: string }): Violation[] {
  return [...checkServerName(input.namespace, input.serverId), ...whyViolations(input.why)];
}

function whyViolations(why: string): Violation[] {
  if (why.trim() === "")
    return [{ field: "why", description: "is empty: say why, for whoever finds the server isolated" }];
  const violation = textViolation("why", why, LIMITS.whyLength);
  return violation ? [violation] : [];
}
