/** From credentials to a principal: the one door for every listener. */
import type { PeerCertificate } from "node:tls";
import { Fault } from "../../domain/fault.js";
import { EVERYBODY, type Principal } from "../../domain/identity.js";

/** What a call carries. */
export interface Credentials {
  /** The `authorization` header as sent. */
  readonly authorization: string | undefined;
  /** What the caller showed in the TLS handshake; absent without TLS, or when it showed none. */
  readonly certificate?: ShownCertificate | undefined;
}

export type ShownCertificate =
  /** Signed by an authority that the registry trusts, and in its time. */
  { readonly verified: true; readonly certificate: PeerCertificate } | { readonly verified: false };

export interface Authenticator {
  /** Throws or rejects with Fault UNAUTHENTICATED, which never repeats any part of a credential. */
  authenticate(credentials: Credentials): Principal | Promise<Principal>;
  /** Calls back whenever credentials may have been taken away or changed; answers what stops that. */
  onChange(listener: () => void): () => void;
  /** Ends what watches files and keys. */
  close(): void;
}

/** What judges bearer tokens of one kind. */
export interface TokenJudge {
  /** Undefined: not of this kind, or not known here; another judge may know it. Throws UNAUTHENTICATED when it is ours and bad. */
  judge(token: string): Principal | Promise<Principal> | undefined;
}

export interface CertificateJudge {
  /** Throws UNAUTHENTICATED when the certificate names nobody known. */
  judge(certificate: PeerCertificate): Principal;
}

/** What is wrong with a credential, in words that help its owner and nobody else. */
export function unauthenticated(problem: string): Fault {
  return new Fault("UNAUTHENTICATED", problem);
}

/** For a registry without identity: everybody is one principal. */
export const NO_IDENTITY: Authenticator = {
  authenticate: () => EVERYBODY,
  onChange: () => () => undefined,
  close: () => undefined,
};

export interface Judges {
  /** In the order in which they are asked. */
  readonly tokens: readonly TokenJudge[];
  readonly certificates: CertificateJudge | undefined;
}

/** A header longer than this is no token of ours; the metadata of a call are bounded anyway. */
const TOKEN = /^bearer +([A-Za-z0-9._~+/-]{1,8192}=*)$/i;

/** A bearer token counts before a certificate: who sends one means it. */
export function judgeWith({ tokens, certificates }: Judges): Authenticator["authenticate"] {
  const wanted = [
    ...(tokens.length > 0 ? ["`authorization: Bearer <token>`"] : []),
    ...(certificates ? ["a client certificate"] : []),
  ].join(" or ");
  return ({ authorization, certificate }) => {
    if (authorization !== undefined) {
      const token = TOKEN.exec(authorization)?.[1];
      if (token === undefined)
        throw unauthenticated("the authorization header is malformed: `Bearer <token>` is expected");
      for (const judge of tokens) {
        const principal = judge.judge(token);
        if (principal !== undefined) return principal;
      }
      throw unauthenticated("the token is not known to this registry");
    }
    if (!certificate || !certificates) throw unauthenticated(`the call carries no credential: send ${wanted}`);
    if (!certificate.verified)
      throw unauthenticated(
        "the client certificate is not from an authority that this registry trusts, or not in its time",
      );
    return certificates.judge(certificate.certificate);
  };
}
