/** Every setting of the registry, once: parsing, `--help` and the README's table are made from this table. */
import { LIMITS } from "../domain/limits.js";

export type LogLevel = "debug" | "info" | "warn" | "error";

export interface HostPort {
  /** Without the brackets of an IPv6 literal. */
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
}

export type StoreChoice =
  | { readonly kind: "embedded" }
  | { readonly kind: "memory" }
  /** `url` may hold a password: show `redactUrl(url)` only. */
  | { readonly kind: "redis"; readonly url: string };

export interface Config {
  readonly grpcAddress: HostPort;
  readonly opsAddress: HostPort;
  readonly store: StoreChoice;
  readonly dataDir: string;
  readonly redisPrefix: string;
  readonly maxWatchers: number;
  /** How long a shutdown waits for calls under way, ms. */
  readonly graceMs: number;
  readonly logLevel: LogLevel;
  /** Allows a gRPC address that other machines can reach, though callers are not identified yet. */
  readonly insecure: boolean;
}

/** A rule for text, and its words in an error message. */
export interface TextRule {
  readonly pattern: RegExp;
  readonly expected: string;
}

/** How a value is read: what it may be, and so what an error says. */
export type Kind =
  | { readonly kind: "address" }
  | { readonly kind: "store" }
  | { readonly kind: "text"; readonly rule: TextRule }
  | { readonly kind: "choice"; readonly of: readonly string[] }
  | { readonly kind: "integer"; readonly min: number; readonly max: number }
  /** A flag without a value; the variable takes true, false, 1 or 0. */
  | { readonly kind: "switch" };

export interface Setting {
  readonly name: keyof Config;
  readonly flag: `--${string}`;
  readonly variable: `TOOLCRIB_${string}`;
  /** As one would write it. */
  readonly fallback: string;
  readonly kind: Kind;
  readonly help: string;
}

const PATH: TextRule = { pattern: /^[^\0]{1,4096}$/s, expected: "a path of 1 to 4,096 characters without NUL" };
const PREFIX: TextRule = {
  pattern: /^[A-Za-z0-9._:-]{1,64}$/,
  expected: "1 to 64 characters of A-Z a-z 0-9 . _ : -",
};

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
    help: "Where the log is kept: embedded, memory, or redis://[user:password@]host[:port][/db] (rediss:// for TLS).",
  },
  {
    name: "dataDir",
    flag: "--data-dir",
    variable: "TOOLCRIB_DATA_DIR",
    fallback: "./data",
    kind: { kind: "text", rule: PATH },
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
    name: "maxWatchers",
    flag: "--max-watchers",
    variable: "TOOLCRIB_MAX_WATCHERS",
    fallback: String(LIMITS.watchers),
    kind: { kind: "integer", min: 1, max: 1_000_000 },
    help: "Open watches of this replica; each holds about 10 KB.",
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
    help: "Allow a gRPC address that other machines can reach, though callers are not identified.",
  },
];

/** Variables of the same family that other programs of the project read. */
export const CLIENT_VARIABLES: readonly string[] = ["TOOLCRIB_URL", "TOOLCRIB_NAMESPACE"];
