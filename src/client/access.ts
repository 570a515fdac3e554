/** What a client shows a registry, and whom it believes to be one. */
import { readFileSync } from "node:fs";
import { createSecureContext, type SecureContextOptions } from "node:tls";
import { RegistryError } from "./registry-error.js";

export interface RegistryAccess {
  /** The bearer token for the next call; undefined for none. Throws RegistryError when there should be one and it cannot be had. */
  readonly token?: () => string | undefined;
  /** PEM of the authorities that sign registries' certificates, instead of the system's. */
  readonly ca?: Buffer;
  /** PEM of the client's own certificate and key, for registries that know callers by certificate. */
  readonly cert?: Buffer;
  readonly key?: Buffer;
}

/** Variables, or anything that may be missing or empty. */
type Variables = Readonly<Record<string, string | undefined>>;

/** Something that the environment names cannot be used; the message never holds a secret. */
export class AccessError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "AccessError";
  }
}

/** From TOOLCRIB_TOKEN or TOOLCRIB_TOKEN_FILE, TOOLCRIB_CA, TOOLCRIB_CERT and TOOLCRIB_KEY. Throws AccessError. */
export function accessFrom(env: Variables): RegistryAccess {
  const given = env["TOOLCRIB_TOKEN"];
  const tokenFile = env["TOOLCRIB_TOKEN_FILE"];
  const ca = pem("TOOLCRIB_CA", env);
  const cert = pem("TOOLCRIB_CERT", env);
  const key = pem("TOOLCRIB_KEY", env);
  if ((cert === undefined) !== (key === undefined))
    throw new AccessError("TOOLCRIB_CERT and TOOLCRIB_KEY need each other.");
  requireUsable({ ca, cert, key });
  return {
    ...(given ? { token: fixedToken(given) } : tokenFile ? { token: tokenFromFile(tokenFile) } : {}),
    ...(ca && { ca }),
    ...(cert && { cert }),
    ...(key && { key }),
  };
}

function requireUsable(material: SecureContextOptions): void {
  try {
    createSecureContext(material);
  } catch (error) {
    throw new AccessError(
      "TOOLCRIB_CA, TOOLCRIB_CERT or TOOLCRIB_KEY is not the PEM file that it should be, or the key is another's.",
      error,
    );
  }
}

function pem(name: string, env: Variables): Buffer | undefined {
  const path = env[name];
  if (!path) return undefined;
  try {
    return readFileSync(path);
  } catch (error) {
    throw new AccessError(`${name} is ${path}, which cannot be read: ${codeOf(error)}.`, error);
  }
}

function fixedToken(given: string): () => string {
  const token = given.trim();
  if (!isToken(token)) throw new AccessError("TOOLCRIB_TOKEN holds something else than one token.");
  return () => token;
}

/** A file is read again at most this often: tokens are replaced while their users run. */
const READ_EVERY_MS = 1_000;

function tokenFromFile(path: string): () => string {
  let token: string | undefined;
  let readAtMs = Number.NEGATIVE_INFINITY;
  return () => {
    if (performance.now() - readAtMs < READ_EVERY_MS && token !== undefined) return token;
    try {
      const text = readFileSync(path, "utf8").trim();
      if (!isToken(text)) throw new AccessError("it holds something else than one token");
      readAtMs = performance.now();
      token = text;
    } catch (error) {
      // While a file is being replaced the token before it is as good as ever.
      if (token === undefined) throw unreadable(path, error);
    }
    return token;
  };
}

function unreadable(path: string, cause: unknown): RegistryError {
  const why = cause instanceof AccessError ? cause.message : codeOf(cause);
  return new RegistryError(`the token file ${path} cannot be used: ${why}`, {
    code: "UNAUTHENTICATED",
    reason: "UNAUTHENTICATED",
    cause,
  });
}

function isToken(text: string): boolean {
  return /^[A-Za-z0-9._~+/-]{1,8192}=*$/.test(text);
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? "unreadable";
}
