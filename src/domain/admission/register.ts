import type { Violation } from "../fault.js";
import { PROBE_LIMITS, type Probing } from "../health/probing.js";
import { LIMITS } from "../limits.js";
import { endpointViolations } from "./endpoint.js";
import { nameViolations, requestIdReasons } from "./names.js";
import { quoted, textViolation } from "./text.js";
import type { DeclaredToolShape } from "./tool.js";
import { declaredName } from "./tool.js";

/** A Register as admission sees it; the catalogue's `RegisterInput` is one. */
export interface RegisterShape {
  /** Empty = default. */
  readonly namespace: string;
  readonly serverId: string;
  readonly instanceId: string;
  readonly endpoint: string;
  readonly title: string;
  readonly tags: readonly string[];
  readonly retention: { readonly kind: "leased"; readonly ttlMs: number | undefined } | { readonly kind: "standing" };
  readonly offer:
    | { readonly kind: "declared"; readonly tools: readonly DeclaredToolShape[] }
    | { readonly kind: "introspect" }
    | { readonly kind: "none" };
  readonly etag: string;
  readonly requestId: string;
  readonly allowEmpty: boolean;
  /** Empty = none. */
  readonly credential: string;
  readonly probing: Probing;
}

/**
 * Every fault of the request and of the server, with field paths as in the proto. Any of them refuses the whole
 * Register. Faults inside one tool are not among them: `admitDeclaredTool` finds those.
 */
export function checkRegister(input: RegisterShape): Violation[] {
  return [
    ...(input.namespace === "" ? [] : nameViolations("namespace", "namespace", input.namespace)),
    ...nameViolations("server_id", "server_id", input.serverId),
    ...instanceViolations(input),
    ...endpointRules(input),
    ...given(textViolation("title", input.title, LIMITS.titleLength)),
    ...tagViolations(input.tags),
    ...leaseViolations(input),
    ...offerViolations(input),
    ...etagViolations(input.etag),
    ...requestIdViolations(input.requestId),
    ...credentialViolations(input),
    ...probingViolations(input.probing),
  ];
}

function given<T>(value: T | undefined): T[] {
  return value === undefined ? [] : [value];
}

function instanceViolations(input: RegisterShape): Violation[] {
  const optional = input.retention.kind === "standing" && input.instanceId === "";
  return optional ? [] : nameViolations("instance_id", "instance_id", input.instanceId);
}

function endpointRules(input: RegisterShape): Violation[] {
  if (input.endpoint !== "") return endpointViolations("endpoint", input.endpoint);
  const why = endpointNeed(input);
  return why ? [{ field: "endpoint", description: `is empty, but ${why}: give the http(s) URL of the MCP endpoint` }] : [];
}

function endpointNeed(input: RegisterShape): string | undefined {
  if (input.retention.kind === "standing") return "a standing registration needs one";
  if (input.offer.kind === "introspect") return "introspect needs one to list the server";
  if (input.offer.kind === "none") return undefined;
  const without = input.offer.tools.findIndex((tool) => tool.definition === undefined);
  return without < 0
    ? undefined
    : `declared.tools[${without}] comes without its definition, which would be fetched from there`;
}

/** Tags of a server; a tool's are judged with the tool. */
function tagViolations(tags: readonly string[]): Violation[] {
  if (tags.length > LIMITS.tags)
    return [{ field: "tags", description: `holds ${tags.length} tags, the limit is ${LIMITS.tags}: send fewer` }];
  return tags.flatMap((tag, i) => nameViolations("tag", `tags[${i}]`, tag));
}

function leaseViolations({ retention }: RegisterShape): Violation[] {
  if (retention.kind === "standing" || retention.ttlMs === undefined) return [];
  const { ttlMs } = retention;
  if (ttlMs >= LIMITS.leaseMinMs && ttlMs <= LIMITS.leaseMaxMs) return [];
  const limits = `${LIMITS.leaseMinMs / 1000} s to ${LIMITS.leaseMaxMs / 1000} s`;
  const advice = "leave it out for the default, or register as standing to be kept until deregistered";
  return [{ field: "lease_ttl", description: `is ${ttlMs / 1000} s, a lease lasts ${limits}: ${advice}` }];
}

function offerViolations({ offer, allowEmpty }: RegisterShape): Violation[] {
  if (offer.kind === "introspect") return [];
  if (offer.kind === "none")
    return [{ field: "offer", description: "is missing: give either declared tools or introspect" }];
  const field = "declared.tools";
  if (offer.tools.length === 0 && !allowEmpty)
    return [{ field, description: "is empty, which is likely a mistake: set allow_empty to register no tools" }];
  if (offer.tools.length > LIMITS.toolsPerServer) {
    const description = `holds ${offer.tools.length} tools, the limit is ${LIMITS.toolsPerServer}: split the server`;
    return [{ field, description }];
  }
  return repeatedTools(offer.tools);
}

/** A set that names a tool twice does not say which one counts. */
function repeatedTools(tools: readonly DeclaredToolShape[]): Violation[] {
  const seen = new Map<string, number>();
  const violations: Violation[] = [];
  tools.forEach((tool, i) => {
    const name = declaredName(tool);
    if (name === "") return;
    const first = seen.get(name);
    if (first === undefined) seen.set(name, i);
    else {
      const field = tool.label?.name ? `declared.tools[${i}].stub.name` : `declared.tools[${i}].definition`;
      violations.push({
        field,
        description: `names the tool ${quoted(name)} of declared.tools[${first}] again: send each tool once`,
      });
    }
  });
  return violations;
}

function credentialViolations({ credential, endpoint }: RegisterShape): Violation[] {
  if (credential === "") return [];
  if (endpoint !== "") return nameViolations("credential", "credential", credential);
  return [{ field: "credential", description: "is set, but without an endpoint nobody would be shown it: leave it out" }];
}

const PROBE_FIELDS = [
  ["intervalMs", "probe.interval", " ms"],
  ["timeoutMs", "probe.timeout", " ms"],
  ["fall", "probe.fall", ""],
  ["rise", "probe.rise", ""],
] as const;

function probingViolations(probing: Probing): Violation[] {
  return PROBE_FIELDS.flatMap(([key, field, unit]) => {
    const value = probing[key];
    const { min, max } = PROBE_LIMITS[key];
    if (value === 0 || (value >= min && value <= max)) return [];
    const description = `is ${value}${unit}, and lies between ${min} and ${max}${unit}: leave it out for the registry's own`;
    return [{ field, description }];
  });
}

function etagViolations(etag: string): Violation[] {
  return given(textViolation("etag", etag, LIMITS.tokenLength));
}

function requestIdViolations(requestId: string): Violation[] {
  if (requestId === "") return [];
  return requestIdReasons(requestId).map((description) => ({ field: "request_id", description }));
}
