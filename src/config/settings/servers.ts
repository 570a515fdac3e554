/** How MCP servers are reached and looked after. */
import { PROBE_LIMITS, PROBE_RULES } from "../../domain/health/probing.js";
import { LIMITS } from "../../domain/limits.js";
import { PATH, type Setting } from "../setting.js";

export const UPSTREAM: readonly Setting[] = [
  {
    name: "egressAllow",
    flag: "--egress-allow",
    variable: "TOOLCRIB_EGRESS_ALLOW",
    fallback: "",
    kind: { kind: "destinations" },
    help:
      "What may be dialled besides public addresses: networks, addresses, names and *.names, with commas between them. While " +
      "the registry listens on loopback only, loopback and private addresses need no entry. Cloud metadata is never dialled.",
  },
  {
    name: "warm",
    flag: "--warm",
    variable: "TOOLCRIB_WARM",
    fallback: "",
    kind: { kind: "tools", max: LIMITS.warmTools },
    help: "Tools whose definitions are loaded at the start: server/tool or namespace:server/tool, with commas between them.",
  },
  {
    name: "upstreamCredentials",
    flag: "--upstream-credentials",
    variable: "TOOLCRIB_UPSTREAM_CREDENTIALS",
    fallback: "",
    kind: { kind: "optional", rule: PATH },
    help: "JSON file of named credentials for MCP servers that want one; read again when it changes.",
  },
];

export const PROBES: readonly Setting[] = [
  {
    name: "probeInterval",
    flag: "--probe-interval",
    variable: "TOOLCRIB_PROBE_INTERVAL",
    fallback: String(PROBE_RULES.intervalMs),
    kind: { kind: "integer", min: 100, max: PROBE_LIMITS.intervalMs.max },
    help: "Milliseconds between two probes of a server that answers; a server may ask for another pace when it registers.",
  },
  {
    name: "probeTimeout",
    flag: "--probe-timeout",
    variable: "TOOLCRIB_PROBE_TIMEOUT",
    fallback: String(PROBE_RULES.timeoutMs),
    kind: { kind: "integer", min: PROBE_LIMITS.timeoutMs.min, max: PROBE_LIMITS.timeoutMs.max },
    help: "Milliseconds that a probe may take.",
  },
  {
    name: "probeFall",
    flag: "--probe-fall",
    variable: "TOOLCRIB_PROBE_FALL",
    fallback: String(PROBE_RULES.fall),
    kind: { kind: "integer", min: PROBE_LIMITS.fall.min, max: PROBE_LIMITS.fall.max },
    help: "Failed probes in a row that call a server down.",
  },
  {
    name: "probeRise",
    flag: "--probe-rise",
    variable: "TOOLCRIB_PROBE_RISE",
    fallback: String(PROBE_RULES.rise),
    kind: { kind: "integer", min: PROBE_LIMITS.rise.min, max: PROBE_LIMITS.rise.max },
    help: "Good probes in a row that call a server up again.",
  },
];
