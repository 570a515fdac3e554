/** Credentials of every kind, made for one test run, and files of them. */
import { execFileSync, spawnSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Metadata } from "@grpc/grpc-js";
import { type CryptoKey, exportJWK, exportSPKI, generateKeyPair, type JWTPayload, SignJWT } from "jose";
import type { Grant } from "../../src/domain/identity.js";

export interface TokenEntry {
  readonly sha256: string;
  readonly principal: string;
  readonly grants: readonly Grant[];
  readonly expires?: string;
}

export function newToken(): string {
  return `planted_${randomBytes(24).toString("base64url")}`;
}

export function entryOf(token: string, principal: string, grants: readonly Grant[], expires?: Date): TokenEntry {
  const sha256 = createHash("sha256").update(token).digest("hex");
  return { sha256, principal, grants, ...(expires && { expires: expires.toISOString() }) };
}

export function writeTokens(path: string, tokens: readonly TokenEntry[]): void {
  writeFileSync(path, JSON.stringify({ tokens }));
}

export function bearer(token: string | undefined): Metadata {
  const metadata = new Metadata();
  if (token !== undefined) metadata.set("authorization", `Bearer ${token}`);
  return metadata;
}

export const ISSUER = "https://issuer.example";
export const AUDIENCE = "toolcrib";

/** An issuer with one RSA and one P-256 key. */
export class Issuer {
  private constructor(
    private readonly rsa: CryptoKey,
    private readonly ec: CryptoKey,
    readonly jwks: { keys: object[] },
    private readonly rsaPublicPem: string,
  ) {}

  static async create(): Promise<Issuer> {
    const rsa = await generateKeyPair("RS256", { extractable: true });
    const ec = await generateKeyPair("ES256", { extractable: true });
    const keys = [
      { ...(await exportJWK(rsa.publicKey)), kid: "rsa-1", alg: "RS256", use: "sig" },
      { ...(await exportJWK(ec.publicKey)), kid: "ec-1", alg: "ES256", use: "sig" },
    ];
    return new Issuer(rsa.privateKey, ec.privateKey, { keys }, await exportSPKI(rsa.publicKey));
  }

  /** Good unless told otherwise; a claim given as undefined is left out. */
  sign(claims: JWTPayload = {}, header: { alg?: "RS256" | "ES256"; kid?: string } = {}): Promise<string> {
    const alg = header.alg ?? "ES256";
    const kid = header.kid ?? (alg === "ES256" ? "ec-1" : "rsa-1");
    return new SignJWT(payloadOf(claims)).setProtectedHeader({ alg, kid }).sign(alg === "ES256" ? this.ec : this.rsa);
  }

  /** An HMAC under the issuer's public key: the classic confusion of algorithms. */
  async confused(): Promise<string> {
    const secret = new TextEncoder().encode(this.rsaPublicPem);
    return new SignJWT(payloadOf({})).setProtectedHeader({ alg: "HS256", kid: "rsa-1" }).sign(secret);
  }

  unsigned(): string {
    const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
    return `${part({ alg: "none", kid: "ec-1" })}.${part(payloadOf({}))}.`;
  }
}

export const seconds = (fromNow: number): number => Math.floor(Date.now() / 1_000) + fromNow;

function payloadOf(claims: JWTPayload): JWTPayload {
  const whole = {
    sub: "jwt-user",
    iss: ISSUER,
    aud: AUDIENCE,
    exp: seconds(600),
    toolcrib: [{ role: "operator", namespaces: ["a"] }],
    ...claims,
  };
  return Object.fromEntries(Object.entries(whole).filter(([, value]) => value !== undefined));
}

export const hasOpenssl = spawnSync("openssl", ["version"]).status === 0;

export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** A certificate authority that writes into a folder. */
export class Authority {
  readonly cert: string;
  private readonly key: string;

  constructor(
    private readonly folder: string,
    private readonly name: string,
  ) {
    this.cert = join(folder, `${name}.pem`);
    this.key = join(folder, `${name}.key`);
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", `/CN=${name}`, "-keyout", this.key, "-out", this.cert);
  }

  /** `san` as openssl takes it, such as `DNS:localhost,IP:127.0.0.1`. */
  issue(file: string, san: string): Certificate {
    const [cert, key, request, extensions] = ["pem", "key", "csr", "ext"].map((e) => join(this.folder, `${file}.${e}`)) as [string, string, string, string];
    writeFileSync(extensions, `subjectAltName=${san}\n`);
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", `/CN=${this.name} ${file}`, "-keyout", key, "-out", request);
    openssl("x509", "-req", "-in", request, "-CA", this.cert, "-CAkey", this.key, "-CAcreateserial", "-days", "1", "-extfile", extensions, "-out", cert);
    return { cert, key };
  }
}

function openssl(...args: string[]): void {
  execFileSync("openssl", args, { stdio: "pipe" });
}
