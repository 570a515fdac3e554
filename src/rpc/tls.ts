/** TLS for every listener: certificate and key from files, taken up anew when they change. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { createSecureContext, type SecureContextOptions } from "node:tls";
import type { Socket } from "node:net";
import type { Logger } from "../catalogue/ports.js";
import type { ShownCertificate } from "./identity/authenticator.js";
import { type Parsed, watchFiles } from "../files/watched-file.js";

export interface TlsFiles {
  /** PEM: the certificate, then its chain. */
  readonly cert: string;
  readonly key: string;
  /** PEM of the authorities whose client certificates are believed; empty = none is asked for. */
  readonly clientCa: string;
}

export interface Tls {
  /**
   * Options of `https.createServer` and its like. A caller without a certificate, or with a bad one, is let in here and
   * judged by the authenticator: health checks need none, and a refusal can say what is wrong.
   */
  readonly serverOptions: SecureContextOptions & { readonly requestCert: boolean; readonly rejectUnauthorized: false };
  /** Calls back with each new set; answers what stops that. */
  onChange(listener: (context: SecureContextOptions) => void): () => void;
  /** Keeps a server's certificates current; answers what stops that. */
  follow(server: { setSecureContext(context: SecureContextOptions): void }): () => void;
  close(): void;
}

/** Throws an Error with one clear sentence when the files cannot be used. */
export function openTls({ cert, key, clientCa }: TlsFiles, log: Logger): Tls {
  const paths = clientCa === "" ? [cert, key] : [cert, key, clientCa];
  const files = watchFiles({ what: "the TLS material", paths, parse: readMaterial, log });
  const onChange: Tls["onChange"] = (listener) => files.onChange(listener);
  return {
    get serverOptions() {
      return { ...files.value, requestCert: clientCa !== "", rejectUnauthorized: false as const };
    },
    onChange,
    follow: (server) => onChange((context) => server.setSecureContext(context)),
    close: () => files.close(),
  };
}

function readMaterial([cert, key, ca]: readonly Buffer[]): Parsed<SecureContextOptions> {
  const problems = [
    ...problemOf("the certificate is not PEM", () => new X509Certificate(cert ?? "")),
    ...problemOf("the key is not an unencrypted PEM private key", () => createPrivateKey(key ?? "")),
    ...(ca ? problemOf("the client authority is not PEM", () => new X509Certificate(ca)) : []),
  ];
  if (problems.length > 0) return { ok: false, problems };
  if (!new X509Certificate(cert ?? "").checkPrivateKey(createPrivateKey(key ?? ""))) {
    return { ok: false, problems: ["the key does not belong to the certificate"] };
  }
  const context = { cert, key, ...(ca && { ca }) };
  const unusable = problemOf("the system's TLS library refuses certificate and key", () =>
    createSecureContext(context),
  );
  return unusable.length > 0 ? { ok: false, problems: unusable } : { ok: true, value: context };
}

function problemOf(problem: string, attempt: () => unknown): string[] {
  try {
    attempt();
    return [];
  } catch {
    // The library's own words are about ASN.1, and may quote what they could not read.
    return [problem];
  }
}

/** A connection's certificate is read once: decoding it costs more than a read in memory. */
const shown = new WeakMap<object, ShownCertificate | "none">();

/** What the peer of this connection showed; undefined without TLS, or when it showed nothing. */
export function certificateOf(socket: object): ShownCertificate | undefined {
  let known = shown.get(socket);
  if (known === undefined) {
    known = readShown(socket as Partial<TlsSocket>);
    shown.set(socket, known);
  }
  return known === "none" ? undefined : known;
}

type TlsSocket = Socket & Pick<import("node:tls").TLSSocket, "encrypted" | "authorized" | "getPeerCertificate">;

function readShown(socket: Partial<TlsSocket>): ShownCertificate | "none" {
  if (socket.encrypted !== true || !socket.getPeerCertificate) return "none";
  const certificate = socket.getPeerCertificate();
  if (!certificate?.raw) return "none";
  return socket.authorized === true ? { verified: true, certificate } : { verified: false };
}
