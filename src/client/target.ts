import type { RegistryAccess } from "./access.js";

/** Where a registry listens. */
export interface Target {
  /** `host:port`, as gRPC dials it. */
  readonly address: string;
  /** The registry runs on this machine, so a loopback endpoint means the same to both sides. */
  readonly loopback: boolean;
  /** Spoken to over TLS. */
  readonly tls: boolean;
  /** What it is shown; nothing if absent. */
  readonly access?: RegistryAccess;
}

export const DEFAULT_ADDRESS = "127.0.0.1:7850";

/** A registry address that cannot be used; the message says what would be accepted. */
export class TargetError extends Error {
  constructor(text: string, why: string) {
    super(
      `"${text}" is not a registry address: ${why}. Give host:port, grpc://host:port, or grpcs://host:port for TLS.`,
    );
    this.name = "TargetError";
  }
}

/**
 * Reads a registry address: `host:port`, `grpc://host[:port]` or `http://host[:port]`, and for TLS `grpcs://host[:port]` or
 * `https://host[:port]`; nothing or an empty text means 127.0.0.1:7850, and a missing port means 7850. Throws TargetError.
 */
export function parseTarget(text: string | undefined): Target {
  const given = text?.trim() ?? "";
  if (given === "") return { address: DEFAULT_ADDRESS, loopback: true, tls: false };
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(given)?.[1]?.toLowerCase();
  const tls = scheme === "https" || scheme === "grpcs";
  if (scheme !== undefined && !tls && scheme !== "grpc" && scheme !== "http") {
    throw new TargetError(given, `the scheme ${scheme}:// is unknown`);
  }
  const url = readUrl(given, scheme);
  if (url.username !== "" || url.password !== "") throw new TargetError(given, "it holds user information");
  if ((url.pathname !== "" && url.pathname !== "/") || url.search !== "" || url.hash !== "") {
    throw new TargetError(given, "it holds a path");
  }
  if (url.port === "0") throw new TargetError(given, "port 0 cannot be dialled");
  const port = url.port === "" ? portOf(given) : url.port;
  return { address: `${url.hostname}:${port}`, loopback: isLoopbackHost(url.hostname), tls };
}

/** Whether a host name or address literal means this machine. */
export function isLoopbackHost(host: string): boolean {
  const bare = host.replace(/^\[|\]$/g, "").toLowerCase();
  return bare === "localhost" || bare.endsWith(".localhost") || bare === "::1" || /^127(\.\d{1,3}){3}$/.test(bare);
}

function readUrl(given: string, scheme: string | undefined): URL {
  const rest = scheme === undefined ? given : given.slice(scheme.length + 3);
  try {
    const url = new URL(`http://${rest}`);
    if (url.hostname === "") throw new TargetError(given, "the host is missing");
    return url;
  } catch (error) {
    if (error instanceof TargetError) throw error;
    throw new TargetError(given, "it cannot be read as host and port");
  }
}

/** URL drops `:80` from http URLs, so an explicit 80 has to be looked for in the text. */
function portOf(given: string): string {
  return /:80\/?$/.test(given) ? "80" : "7850";
}
