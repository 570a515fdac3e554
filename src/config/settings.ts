/** Every setting of the registry, once: parsing, `--help` and the README's table are made from this table. */
import type { AllowList } from "../domain/admission/egress.js";
import { PROBE_LIMITS, PROBE_RULES } from "../domain/health/probing.js";
import { LIMITS } from "../domain/limits.js";
import { DEFAULT_QUOTAS } from "../domain/quotas.js";

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

const PATH: TextRule = { pattern: /^[^\0]{1,4096}$/s, expected: "a path of 1 to 4,096 characters without NUL", placeholder: "file" };
const FOLDER: TextRule = { ...PATH, placeholder: "folder" };
const PREFIX: TextRule = {
  pattern: /^[A-Za-z0-9._:-]{1,64}$/,
  expected: "1 to 64 characters of A-Z a-z 0-9 . _ : -",
  placeholder: "prefix",
};

const KEY_SET: TextRule = {
  pattern: /^(?!http:\/\/(?!localhost[:/]|127\.0\.0\.1[:/]|\[::1\][:/]))(?!https?:\/\/[^/]*@)[^\0\s]{1,2048}$/s,
  expected: "a path, or an https URL without user information (http on loopback)",
  placeholder: "file|url",
};
const CLAIM: TextRule = { pattern: /^[\x21-\x7e]{1,1024}$/, expected: "1 to 1,024 characters of visible ASCII", placeholder: "claim" };
/** Signatures that only the holder of a private key can make. */
const SIGNATURES = [
  "ES256",
  "ES384",
  "ES512",
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "EdDSA",
  "Ed25519",
];

export const SETTINGS: readonly Setting[] = [
  {
    name: "grpcAddress",
    flag: "--grpc-address",
    variable: "TOOLCRIB_GRPC_ADDRESS",
    fallback: "127.0.0.1:7850",
    kind: { kind: "address" },
    help: "Where the gRPC API listens; port 0 takes any free port.",
  },
  {
    name: "httpAddress",
    flag: "--http-address",
    variable: "TOOLCRIB_HTTP_ADDRESS",
    fallback: "127.0.0.1:7851",
    kind: { kind: "address or off" },
    help: "Where the same API listens over HTTP: Connect (JSON, for curl) and gRPC-Web (for browsers); off for none.",
  },
  {
    name: "corsOrigins",
    flag: "--cors-origins",
    variable: "TOOLCRIB_CORS_ORIGINS",
    fallback: "",
    kind: { kind: "origins" },
    help: "Origins whose web pages may call the HTTP API, with commas between them; * lets all in, without credentials.",
  },
  {
    name: "opsAddress",
    flag: "--ops-address",
    variable: "TOOLCRIB_OPS_ADDRESS",
    fallback: "127.0.0.1:7852",
    kind: { kind: "address" },
    help: "Where /livez, /readyz and /metrics listen.",
  },
  {
    name: "store",
    flag: "--store",
    variable: "TOOLCRIB_STORE",
    fallback: "embedded",
    kind: { kind: "store" },
    help:
      "Where the log is kept: embedded, memory, or redis://[user:password@]host[:port][/db]; " +
      "redis+sentinel://[user:password@]host[:port],…/primary[/db] follows failovers; redis+cluster://[user:password@]host[:port],… " +
      "is a Redis Cluster; rediss… is the same with TLS.",
  },
  {
    name: "dataDir",
    flag: "--data-dir",
    variable: "TOOLCRIB_DATA_DIR",
    fallback: "./data",
    kind: { kind: "text", rule: FOLDER },
    help: "Folder of the embedded store.",
  },
  {
    name: "redisPrefix",
    flag: "--redis-prefix",
    variable: "TOOLCRIB_REDIS_PREFIX",
    fallback: "toolcrib:",
    kind: { kind: "text", rule: PREFIX },
    help: "What every Redis key begins with; replicas of one registry share it.",
  },
  {
    name: "redisPasswordFile",
    flag: "--redis-password-file",
    variable: "TOOLCRIB_REDIS_PASSWORD_FILE",
    fallback: "",
    kind: { kind: "optional", rule: PATH },
    help: "File of the password for Redis, instead of one in --store; read at the start.",
  },
  {
    name: "redisSentinelPasswordFile",
    flag: "--redis-sentinel-password-file",
    variable: "TOOLCRIB_REDIS_SENTINEL_PASSWORD_FILE",
    fallback: "",
    kind: { kind: "optional", rule: PATH },
    help: "File of the password for the Sentinels, where they want one; read at the start.",
  },
  {
    name: "redisCa",
    flag: "--redis-ca",
    variable: "TOOLCRIB_REDIS_CA",
    fallback: "",
    kind: { kind: "optional", rule: PATH },
    help: "PEM file of the authorities that Redis's certificate is judged by, instead of the system's; read for every connection.",
  },
  {
    name: "redisCert",
    flag: "--redis-cert",
    variable: "TOOLCRIB_REDIS_CERT",
    fallback: "",
    kind: { kind: "optional", rule: PATH },
    help: "PEM file of the certificate that is shown to Redis, where it wants one; read for every connection.",
  },
  {
    name: "redisKey",
    flag: "--redis-key",
    variable: "TOOLCRIB_REDIS_KEY",
    fallback: "",
    kind: { kind: "optional", rule: PATH },
    help: "PEM file of that certificate's private key.",
  },
  {
    name: "partitions",
    flag: "--partitions",
    variable: "TOOLCRIB_PARTITIONS",
    fallback: "0",
    kind: { kind: "integer", min: 0, max: LIMITS.partitions },
    help:
      "Logs that namespaces are spread over, fixed when a store is created: more than one lets a Redis Cluster share the work. 0 takes " +
      "the number that the store has, and 1 for a new one.",
  },
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
  {
    name: "graceMs",
    flag: "--grace",
    variable: "TOOLCRIB_GRACE",
    fallback: String(LIMITS.graceMs),
    kind: { kind: "integer", min: 0, max: 600_000 },
    help: "Milliseconds that a shutdown waits for calls under way.",
  },
  {
    name: "logLevel",
    flag: "--log-level",
    variable: "TOOLCRIB_LOG_LEVEL",
    fallback: "info",
    kind: { kind: "choice", of: ["debug", "info", "warn", "error"] },
    help: "Least severe log line that is written: debug, info, warn or error.",
  },
  {
    name: "insecure",
    flag: "--insecure",
    variable: "TOOLCRIB_INSECURE",
    fallback: "false",
    kind: { kind: "switch" },
    help: "Allow an address that other machines can reach, though callers are not identified.",
  },
  {
    name: "tokensFile",
    flag: "--tokens-file",
    variable: "TOOLCRIB_TOKENS_FILE",
    fallback: "",
    kind: { kind: "optional", rule: PATH },
    help: "JSON file of static tokens by hash (`toolcrib token new` makes entries); read again when it changes.",
  },
  {
    name: "jwtJwks",
    flag: "--jwt-jwks",
    variable: "TOOLCRIB_JWT_JWKS",
    fallback: "",
    kind: { kind: "optional", rule: KEY_SET },
    help: "Key set that JWTs are judged by: a file or an https URL; needs issuer and audience.",
  },
  {
    name: "jwtIssuer",
    flag: "--jwt-issuer",
    variable: "TOOLCRIB_JWT_ISSUER",
    fallback: "",
    kind: { kind: "optional", rule: CLAIM },
    help: "The `iss` that a JWT must have.",
  },
  {
    name: "jwtAudience",
    flag: "--jwt-audience",
    variable: "TOOLCRIB_JWT_AUDIENCE",
    fallback: "",
    kind: { kind: "optional", rule: CLAIM },
    help: "The `aud` that a JWT must have.",
  },
  {
    name: "jwtAlgorithms",
    flag: "--jwt-algorithms",
    variable: "TOOLCRIB_JWT_ALGORITHMS",
    fallback: "ES256,RS256,EdDSA",
    kind: { kind: "choices", of: SIGNATURES },
    help: "Signature algorithms that a JWT may have, with commas between them.",
  },
  {
    name: "tlsCert",
    flag: "--tls-cert",
    variable: "TOOLCRIB_TLS_CERT",
    fallback: "",
    kind: { kind: "optional", rule: PATH },
    help: "PEM file of this replica's certificate and chain: every listener speaks TLS; read again when it changes.",
  },
  {
    name: "tlsKey",
    flag: "--tls-key",
    variable: "TOOLCRIB_TLS_KEY",
    fallback: "",
    kind: { kind: "optional", rule: PATH },
    help: "PEM file of the certificate's private key.",
  },
  {
    name: "tlsClientCa",
    flag: "--tls-client-ca",
    variable: "TOOLCRIB_TLS_CLIENT_CA",
    fallback: "",
    kind: { kind: "optional", rule: PATH },
    help: "PEM file of the authorities whose client certificates identify callers; needs --certificates-file.",
  },
  {
    name: "certificatesFile",
    flag: "--certificates-file",
    variable: "TOOLCRIB_CERTIFICATES_FILE",
    fallback: "",
    kind: { kind: "optional", rule: PATH },
    help: "JSON file: grants by URI or DNS name of a client certificate; read again when it changes.",
  },
];

/** Variables of the same family that other programs of the project read. */
export const CLIENT_VARIABLES: readonly string[] = [
  "TOOLCRIB_URL",
  "TOOLCRIB_NAMESPACE",
  "TOOLCRIB_TOKEN",
  "TOOLCRIB_TOKEN_FILE",
  "TOOLCRIB_CA",
  "TOOLCRIB_CERT",
  "TOOLCRIB_KEY",
];
