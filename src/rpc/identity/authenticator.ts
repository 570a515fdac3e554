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
  judge(token: string): Promise<Principal | undefined> | Principal | undefined;
}

export interface CertificateJudge {
  /** Throws UNAUTHENTICATED when the certificate names nobody known. */
  judge(certificate: PeerCertificate): Principal;
}

/** The faults of a credential: what is wrong with it, in words that help its owner and nobody else. */
export function unauthenticated(problem: string): Fault {
  return new Fault("UNAUTHENTICATED", problem);
}

/** For a registry without identity: everybody is one principal. */
export const OPEN_DOOR: Authenticator = {
  authenticate: () => EVERYBODY,
  onChange: () => () => undefined,
  close: () => undefined,
};
