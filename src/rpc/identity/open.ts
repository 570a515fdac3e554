/** Identity as configured: files and keys are opened here, once, for all listeners. */
import type { Logger } from "../../catalogue/ports.js";
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

/** Throws an Error with one clear sentence when a file cannot be used. Without any source everybody is let in. */
export function openIdentity(options: IdentityOptions, log: Logger, now: () => number): Authenticator {
  const sources: Source[] = [];
  const opened = <S extends Source>(source: S): S => {
    sources.push(source);
    return source;
  };
  const closeAll = (): void => {
    for (const source of sources) source.close();
  };
  try {
    const { tokensFile, jwtJwks, jwt, certificatesFile, way } = options;
    const tokens = [
      ...(tokensFile ? [tokenJudge(opened(watchTokens(tokensFile, log)), now)] : []),
      ...(jwtJwks ? [jwtJudge(opened(watchKeys(jwtJwks, log, way)), jwt, now)] : []),
    ];
    const certificates = certificatesFile
      ? certificateJudge(opened(watchCertificateGrants(certificatesFile, log)), now)
      : undefined;
    if (sources.length === 0) return NO_IDENTITY;
    return {
      authenticate: judgeWith({ tokens, certificates }),
      onChange(listener) {
        const forgets = sources.map((source) => source.onChange(listener));
        return () => {
          for (const forget of forgets) forget();
        };
      },
      close: closeAll,
    };
  } catch (error) {
    closeAll();
    throw error;
  }
}
