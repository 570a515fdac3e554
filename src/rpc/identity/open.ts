/** Identity as configured: files and keys are opened here, once, for all listeners. */
import type { Logger } from "../../catalogue/ports.js";
import { Attempts } from "../../files/problems.js";
import { type Authenticator, judgeWith, NO_IDENTITY } from "./authenticator.js";
import { certificateJudge, watchCertificateGrants } from "./certificates.js";
import { type JwtOptions, jwtJudge } from "./jwt.js";
import { watchKeys, type WayOut } from "./keys.js";
import { tokenJudge, watchTokens } from "./tokens.js";

export interface IdentityOptions {
  /** Empty = none. */
  readonly tokensFile: string;
  /** Key set as a path or URL; empty = none. */
  readonly jwtJwks: string;
  readonly jwt: JwtOptions;
  /** Empty = none. */
  readonly certificatesFile: string;
  /** To the issuer, for a key set at a URL. */
  readonly way: WayOut;
}

interface Source {
  onChange(listener: () => void): () => void;
  close(): void;
}

/** Throws Problems with everything that is wrong with its files. Without any source everybody is let in. */
export function openIdentity(options: IdentityOptions, log: Logger, now: () => number): Authenticator {
  const { tokensFile, jwtJwks, jwt, certificatesFile, way } = options;
  const attempts = new Attempts();
  const sources: Source[] = [];
  const opened = <S extends Source>(path: string, open: () => S): S | undefined => {
    const source = path === "" ? undefined : attempts.try(open);
    if (source) sources.push(source);
    return source;
  };
  const close = (): void => {
    for (const source of sources) source.close();
  };
  const tokens = opened(tokensFile, () => watchTokens(tokensFile, log));
  const keys = opened(jwtJwks, () => watchKeys(jwtJwks, log, way));
  const certificates = opened(certificatesFile, () => watchCertificateGrants(certificatesFile, log));
  if (attempts.failed) {
    close();
    throw attempts.problems();
  }
  if (sources.length === 0) return NO_IDENTITY;
  const judges = [...(tokens ? [tokenJudge(tokens, now)] : []), ...(keys ? [jwtJudge(keys, jwt, now)] : [])];
  return {
    authenticate: judgeWith({ tokens: judges, certificates: certificates && certificateJudge(certificates, now) }),
    onChange(listener) {
      const forgets = sources.map((source) => source.onChange(listener));
      return () => {
        for (const forget of forgets) forget();
      };
    },
    close,
  };
}
