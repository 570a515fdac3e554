/** What a setting is: its value in the configuration, how it is written, and what it may be. */
import type { AllowList } from "../domain/admission/egress.js";

export type LogLevel = "debug" | "info" | "warn" | "error";

/** A tool of a namespace. */
export interface ToolName {
  readonly namespace: string;
  readonly toolId: string;
}

export interface HostPort {
  /** Without the brackets of an IPv6 literal. */
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
}

export type StoreChoice =
  | { readonly kind: "embedded" }
  | { readonly kind: "memory" }
  /** `url` may hold a password: show `describeRedis` of it only. */
  | { readonly kind: "redis"; readonly url: string };

export interface Config {
  readonly grpcAddress: HostPort;
  readonly httpAddress: HostPort | "off";
  /** Origins whose pages may call the HTTP listener; `*` stands alone. */
  readonly corsOrigins: readonly string[];
  readonly opsAddress: HostPort;
  readonly store: StoreChoice;
  readonly dataDir: string;
  readonly redisPrefix: string;
  /** Logs that namespaces are spread over; 0 takes the number that the store has. */
  readonly partitions: number;
  /** Paths; empty = unset. */
  readonly redisPasswordFile: string;
  readonly redisSentinelPasswordFile: string;
  readonly redisCa: string;
  readonly redisCert: string;
  readonly redisKey: string;
  readonly maxWatchers: number;
  /** Of one identified principal, on this replica. */
  readonly maxWatchersPerPrincipal: number;
  /** Of a namespace. */
  readonly maxServers: number;
  readonly maxTools: number;
  /** Of a namespace, and of one identified principal in it. */
  readonly maxToolsets: number;
  readonly maxToolsetsPerPrincipal: number;
  /** Registers per second of one identified principal, on this replica. */
  readonly registerRate: number;
  /** Lateness of the event loop from which work is refused, ms; 0 = never. */
  readonly maxLateness: number;
  /** How servers are probed where they do not ask for something else; times in ms. */
  readonly probeInterval: number;
  readonly probeTimeout: number;
  readonly probeFall: number;
  readonly probeRise: number;
  /** What may be dialled beyond the default. */
  readonly egressAllow: AllowList;
  /** Definitions to have in memory before anybody asks. */
  readonly warm: readonly ToolName[];
  /** How long a shutdown waits for calls under way, ms. */
  readonly graceMs: number;
  readonly logLevel: LogLevel;
  /** Allows an address that other machines can reach though callers are not identified. */
  readonly insecure: boolean;
  /** Paths; empty = unset. */
  readonly tokensFile: string;
  readonly certificatesFile: string;
  readonly tlsCert: string;
  readonly tlsKey: string;
  readonly tlsClientCa: string;
  /** Path or URL; empty = unset. */
  readonly jwtJwks: string;
  readonly jwtIssuer: string;
  readonly jwtAudience: string;
  readonly jwtAlgorithms: readonly string[];
  /** Path; empty = unset. */
  readonly upstreamCredentials: string;
  /** Whether outcomes that callers report are remembered, for how many days, and how many a caller may report per second. */
  readonly memory: "on" | "off";
  readonly memoryRetention: number;
  readonly reportRate: number;
  /** Path of a folder; empty = unset. */
  readonly gateRules: string;
  /** Base URL, model and path of the key; empty = unset. */
  readonly embedder: string;
  readonly embedderModel: string;
  readonly embedderKeyFile: string;
  /** Ms that an answer waits for its vector. */
  readonly embedderBudget: number;
  /** The registry's own process serves a gateway as well. */
  readonly gateway: boolean;
  readonly gatewayAddress: HostPort;
  readonly gatewayMode: "auto" | "dynamic" | "stable";
  /** A comma list. */
  readonly gatewayStableClients: string;
  /** A comma list. */
  readonly gatewayHosts: string;
  /** As corsOrigins. */
  readonly gatewayOrigins: readonly string[];
  readonly gatewayCallers: "auto" | "caller" | "gateway";
  readonly gatewayAlways: readonly ToolName[];
  /** Seconds. */
  readonly gatewayIdle: number;
  readonly gatewayStreams: number;
  /** Path; empty = unset. */
  readonly gatewayCallerCredentials: string;
  readonly gatewayOpsAddress: HostPort | "off";
  /** A comma list. */
  readonly gatewayScopes: string;
  /** Base URL, model and path of the key; empty = unset. */
  readonly gatewaySelector: string;
  readonly gatewaySelectorModel: string;
  readonly gatewaySelectorKeyFile: string;
}

/** A rule for text, and its words in an error message. */
export interface TextRule {
  readonly pattern: RegExp;
  readonly expected: string;
  /** What stands for it in `--help`; `text` if unsaid. */
  readonly placeholder?: string;
}

/** How a value is read: what it may be, and so what an error says. */
export type Kind =
  | { readonly kind: "address" }
  | { readonly kind: "address or off" }
  /** A comma list of web origins, or `*`. */
  | { readonly kind: "origins" }
  | { readonly kind: "store" }
  /** A comma list of networks, addresses and names. */
  | { readonly kind: "destinations" }
  /** A comma list of tool_ids, each with its namespace and a colon before it where that is not the default one. */
  | { readonly kind: "tools"; readonly max: number }
  | { readonly kind: "text"; readonly rule: TextRule }
  /** As text, or nothing. */
  | { readonly kind: "optional"; readonly rule: TextRule }
  | { readonly kind: "choice"; readonly of: readonly string[] }
  /** A comma list of some of these. */
  | { readonly kind: "choices"; readonly of: readonly string[] }
  | { readonly kind: "integer"; readonly min: number; readonly max: number }
  /** A flag without a value; the variable takes true, false, 1 or 0. */
  | { readonly kind: "switch" };

export interface Setting {
  readonly name: keyof Config;
  readonly flag: `--${string}`;
  readonly variable: `TOOLCRIB_${string}`;
  /** As one would write it; empty = unset. */
  readonly fallback: string;
  readonly kind: Kind;
  readonly help: string;
}

/** A rule that settings of several kinds share. */
export const PATH: TextRule = { pattern: /^[^\0]{1,4096}$/s, expected: "a path of 1 to 4,096 characters without NUL", placeholder: "file" };
