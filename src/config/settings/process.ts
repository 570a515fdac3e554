/** Where the process listens, and how it starts, ends and speaks. */
import { LIMITS } from "../../domain/limits.js";
import type { Setting } from "../setting.js";

export const LISTENERS: readonly Setting[] = [
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
];

export const PROCESS: readonly Setting[] = [
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
];
