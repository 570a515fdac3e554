/** How much a replica, a namespace and a caller may have. */
import { LIMITS } from "../../domain/limits.js";
import { DEFAULT_QUOTAS, DEFAULT_TOOLSET_QUOTAS } from "../../domain/quotas.js";
import type { Setting } from "../setting.js";

export const BOUNDS: readonly Setting[] = [
  {
    name: "maxWatchers",
    flag: "--max-watchers",
    variable: "TOOLCRIB_MAX_WATCHERS",
    fallback: String(LIMITS.watchers),
    kind: { kind: "integer", min: 1, max: 1_000_000 },
    help: "Open watches of this replica; each holds about 10 KB.",
  },
  {
    name: "maxWatchersPerPrincipal",
    flag: "--max-watchers-per-principal",
    variable: "TOOLCRIB_MAX_WATCHERS_PER_PRINCIPAL",
    fallback: String(DEFAULT_QUOTAS.watchersPerPrincipal),
    kind: { kind: "integer", min: 1, max: 1_000_000 },
    help: "Open watches of one identified principal on this replica; callers without identity share --max-watchers alone.",
  },
  {
    name: "maxServers",
    flag: "--max-servers",
    variable: "TOOLCRIB_MAX_SERVERS",
    fallback: String(DEFAULT_QUOTAS.servers),
    kind: { kind: "integer", min: 1, max: 1_000_000 },
    help: "Servers that one namespace may hold.",
  },
  {
    name: "maxTools",
    flag: "--max-tools",
    variable: "TOOLCRIB_MAX_TOOLS",
    fallback: String(DEFAULT_QUOTAS.tools),
    kind: { kind: "integer", min: 1, max: 10_000_000 },
    help: "Tools that one namespace may hold.",
  },
  {
    name: "maxToolsets",
    flag: "--max-toolsets",
    variable: "TOOLCRIB_MAX_TOOLSETS",
    fallback: String(DEFAULT_TOOLSET_QUOTAS.perNamespace),
    kind: { kind: "integer", min: 1, max: 500_000 },
    help: "Toolsets that may live in one namespace at once, on all replicas together.",
  },
  {
    name: "maxToolsetsPerPrincipal",
    flag: "--max-toolsets-per-principal",
    variable: "TOOLCRIB_MAX_TOOLSETS_PER_PRINCIPAL",
    fallback: String(DEFAULT_TOOLSET_QUOTAS.perPrincipal),
    kind: { kind: "integer", min: 1, max: 250_000 },
    help: "Toolsets of one identified principal in one namespace, on all replicas together; callers without identity share --max-toolsets alone.",
  },
  {
    name: "registerRate",
    flag: "--register-rate",
    variable: "TOOLCRIB_REGISTER_RATE",
    fallback: String(DEFAULT_QUOTAS.registersPerSecond),
    kind: { kind: "integer", min: 1, max: 1_000_000 },
    help: "Registers per second of one identified principal on this replica, ten times as many at once; beyond them it is told when its turn comes.",
  },
  {
    name: "maxLateness",
    flag: "--max-lateness",
    variable: "TOOLCRIB_MAX_LATENESS",
    fallback: "200",
    kind: { kind: "integer", min: 0, max: 10_000 },
    help: "Milliseconds that calls wait for their turn when Registers begin to be refused; loads at twice, new watches at four times as much. 0: never.",
  },
];
