/** mTLS: the names in a verified client certificate → a principal. */
import type { PeerCertificate } from "node:tls";
import type { Logger } from "../../catalogue/ports.js";
import { principalProblems, readGrants } from "../../domain/grants.js";
import type { Grant, Principal } from "../../domain/identity.js";
import { type CertificateJudge, unauthenticated } from "./authenticator.js";
import { readList, unknownKeys } from "../../files/json-file.js";
import { type Parsed, type WatchedFiles, watchFiles } from "../../files/watched-file.js";

/** Grants by subject alternative name: a URI such as `spiffe://acme/billing`, or a DNS name. */
export type CertificateGrants = ReadonlyMap<string, readonly Grant[]>;

const MAX_NAMES = 10_000;

/** `{"certificates": [{"san": "spiffe://acme/billing", "grants": [...]}]}` */
export function readCertificateGrants(content: Buffer): Parsed<CertificateGrants> {
  const list = readList(content, "certificates", MAX_NAMES);
  if (!list.ok) return list;
  const problems: string[] = [];
  const known = new Map<string, readonly Grant[]>();
  list.value.forEach((entry, i) => {
    const at = `certificates[${i}]`;
    const { san } = entry;
    problems.push(...unknownKeys(at, entry, ["san", "grants"]), ...principalProblems(`${at}.san`, san));
    if (typeof san === "string" && known.has(san)) problems.push(`${at}.san is the same as that of another entry`);
    const grants = readGrants(`${at}.grants`, entry["grants"]);
    if (!grants.ok) problems.push(...grants.problems);
    else known.set(String(san), grants.value);
  });
  return problems.length > 0 ? { ok: false, problems } : { ok: true, value: known };
}

/** Throws an Error with everything that is wrong when the file cannot be used at the start. */
export function watchCertificateGrants(path: string, log: Logger): WatchedFiles<CertificateGrants> {
  return watchFiles({
    what: "the certificates file",
    paths: [path],
    parse: ([content]) => readCertificateGrants(content ?? Buffer.alloc(0)),
    log,
  });
}

export function certificateJudge(file: { readonly value: CertificateGrants }, now: () => number): CertificateJudge {
  // The same certificate must stay the same principal while the file stands: callers compare by object.
  let judged: { grants: CertificateGrants; principals: WeakMap<PeerCertificate, Principal> } | undefined;
  return {
    judge(certificate) {
      if (judged?.grants !== file.value) judged = { grants: file.value, principals: new WeakMap() };
      const principal = judged.principals.get(certificate) ?? identify(certificate, file.value);
      judged.principals.set(certificate, principal);
      if ((principal.expiresAtMs ?? 0) <= now()) throw unauthenticated("the client certificate has expired");
      return principal;
    },
  };
}

function identify(certificate: PeerCertificate, known: CertificateGrants): Principal {
  const names = alternativeNames(certificate.subjectaltname ?? "");
  if (names.length === 0)
    throw unauthenticated("the client certificate has no URI or DNS name as subject alternative name");
  for (const id of names) {
    const grants = known.get(id);
    if (grants) return { id, grants, expiresAtMs: Date.parse(certificate.valid_to) };
  }
  throw unauthenticated("the client certificate's names are not known to this registry");
}

/**
 * The URI and DNS names, in order. Node writes `DNS:a.example, URI:spiffe://x`, and quotes, as JSON does, a name that holds
 * anything which could be taken for the start of another.
 */
export function alternativeNames(text: string): string[] {
  const names: string[] = [];
  for (const [, kind, name] of text.matchAll(/(?:^|, )([A-Za-z ]+):("(?:[^"\\]|\\.)*"|[^,"]*)(?=, |$)/g)) {
    if (name === undefined || (kind !== "DNS" && kind !== "URI")) continue;
    names.push(name.startsWith('"') ? String(JSON.parse(name)) : name);
  }
  return names;
}
