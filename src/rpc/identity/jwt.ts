/** Bearer tokens that are JWTs: signature, issuer, audience, time, and the grants in their `toolcrib` claim. */
import { createHash } from "node:crypto";
import { createLocalJWKSet, errors, type JWTPayload, jwtVerify } from "jose";
import { Fault } from "../../domain/fault.js";
import { principalProblems, readGrants } from "../../domain/grants.js";
import type { Principal } from "../../domain/identity.js";
import { type TokenJudge, unauthenticated } from "./authenticator.js";
import type { Keys } from "./keys.js";

export interface JwtOptions {
  readonly issuer: string;
  readonly audience: string;
  /** Asymmetric ones only; the configuration takes no others. */
  readonly algorithms: readonly string[];
}

/** Clocks of issuer and registry may differ by this. */
export const CLOCK_TOLERANCE_S = 30;
/** Verified tokens that are remembered, so that a hot caller does not pay for a signature at each call. */
const REMEMBERED = 1_000;
const COMPACT_JWS = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*$/;

export function jwtJudge(keys: Keys, options: JwtOptions, now: () => number): TokenJudge {
  const remembered = new Map<string, Principal>();
  keys.onChange(() => remembered.clear());
  const verified = async (token: string, key: string): Promise<Principal> => {
    const set = keys.current;
    const principal = await verify(token, keys, options);
    // Keys that changed meanwhile may have been taken away: what they verified is not remembered.
    if (keys.current === set) remember(remembered, key, principal);
    return principal;
  };
  return {
    judge(token) {
      if (!COMPACT_JWS.test(token)) return undefined;
      const key = createHash("sha256").update(token).digest("base64");
      const known = remembered.get(key);
      if (!known) return verified(token, key);
      if ((known.expiresAtMs ?? 0) > now()) return known;
      remembered.delete(key);
      throw unauthenticated("the token has expired");
    },
  };
}

function remember(remembered: Map<string, Principal>, key: string, principal: Principal): void {
  const [oldest] = remembered.keys();
  if (remembered.size >= REMEMBERED && oldest !== undefined) remembered.delete(oldest);
  remembered.set(key, principal);
}

async function verify(token: string, keys: Keys, options: JwtOptions): Promise<Principal> {
  try {
    return await verifyWith(token, keys, options);
  } catch (error) {
    if (!(error instanceof errors.JWKSNoMatchingKey)) throw explain(error);
  }
  // The issuer may have begun to sign with a new key since the set was fetched.
  if (!(await keys.refresh())) throw unauthenticated("the token is signed with a key that this registry does not know");
  try {
    return await verifyWith(token, keys, options);
  } catch (error) {
    throw explain(error);
  }
}

async function verifyWith(token: string, keys: Keys, options: JwtOptions): Promise<Principal> {
  const set = keys.current ?? ((await keys.refresh()) ? keys.current : undefined);
  if (!set) {
    throw new Fault("NOT_READY", "the keys that tokens are judged by cannot be fetched at the moment; try again", {
      retryAfterMs: 1_000,
    });
  }
  const { payload } = await jwtVerify(token, createLocalJWKSet(set), {
    issuer: options.issuer,
    audience: options.audience,
    algorithms: [...options.algorithms],
    clockTolerance: CLOCK_TOLERANCE_S,
    requiredClaims: ["exp", "sub"],
  });
  return principalOf(payload);
}

function principalOf({ sub, exp, toolcrib }: JWTPayload): Principal {
  if (principalProblems("sub", sub).length > 0)
    throw unauthenticated("the token's sub claim cannot be a principal's id");
  const grants = readGrants("toolcrib", toolcrib);
  if (!grants.ok) throw unauthenticated(`the token's claim ${grants.problems.join("; ")}`);
  return { id: String(sub), grants: grants.value, expiresAtMs: (Number(exp) + CLOCK_TOLERANCE_S) * 1_000 };
}

/** jose's own messages may quote the token; these do not. */
function explain(error: unknown): unknown {
  if (error instanceof Fault) return error;
  if (error instanceof errors.JWTExpired) return unauthenticated("the token has expired");
  if (error instanceof errors.JWTClaimValidationFailed) return unauthenticated(claimProblem(error));
  if (error instanceof errors.JOSEAlgNotAllowed)
    return unauthenticated("the token's algorithm is not one that this registry accepts");
  if (error instanceof errors.JWSSignatureVerificationFailed)
    return unauthenticated("the token's signature does not verify");
  if (error instanceof errors.JWKSNoMatchingKey)
    return unauthenticated("the token is signed with a key that this registry does not know");
  if (error instanceof errors.JWKSMultipleMatchingKeys)
    return unauthenticated("the token names no key (kid), and several could have signed it");
  if (error instanceof errors.JOSEError) return unauthenticated("the token is malformed");
  return error;
}

function claimProblem({ claim, reason }: errors.JWTClaimValidationFailed): string {
  if (reason === "missing") return `the token lacks the claim ${claim}`;
  switch (claim) {
    case "iss":
      return "the token is from another issuer";
    case "aud":
      return "the token is for another audience";
    case "nbf":
    case "iat":
      return "the token is not valid yet";
    default:
      return "the token's claims are not valid";
  }
}
