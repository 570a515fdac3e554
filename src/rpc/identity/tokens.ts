/** Static tokens: the file holds their hashes alone, so whoever reads it has no token. */
import { createHash, timingSafeEqual } from "node:crypto";
import type { Logger } from "../../catalogue/ports.js";
import { principalProblems, readGrants } from "../../domain/grants.js";
import type { Principal } from "../../domain/identity.js";
import { type TokenJudge, unauthenticated } from "./authenticator.js";
import { readList, unknownKeys } from "../../files/json-file.js";
import { type Parsed, type WatchedFiles, watchFiles } from "../../files/watched-file.js";

interface StaticToken {
  readonly hash: Buffer;
  readonly principal: Principal;
}

/** By the hex of its hash. */
export type StaticTokens = ReadonlyMap<string, StaticToken>;

const MAX_TOKENS = 10_000;
const HASH = /^[0-9a-f]{64}$/;
const INSTANT = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:\d{2})$/;

/** `{"tokens": [{"sha256": "<hex>", "principal": "ci", "grants": [...], "expires": "2027-01-01T00:00:00Z"}]}` */
export function readTokens(content: Buffer): Parsed<StaticTokens> {
  const list = readList(content, "tokens", MAX_TOKENS);
  if (!list.ok) return list;
  const problems: string[] = [];
  const tokens = new Map<string, StaticToken>();
  list.value.forEach((entry, i) => {
    const at = `tokens[${i}]`;
    const { sha256, principal, expires } = entry;
    const found = unknownKeys(at, entry, ["sha256", "principal", "grants", "expires"]);
    const hash = typeof sha256 === "string" && HASH.test(sha256) ? sha256 : undefined;
    // What stands there may be the token itself, put in by mistake: it is not shown.
    if (hash === undefined) found.push(`${at}.sha256 must be the 64 lower-case hex digits of the token's SHA-256`);
    else if (tokens.has(hash)) found.push(`${at}.sha256 is the same as that of another entry`);
    found.push(...principalProblems(`${at}.principal`, principal));
    const grants = readGrants(`${at}.grants`, entry["grants"]);
    if (!grants.ok) found.push(...grants.problems);
    const expiresAtMs = typeof expires === "string" && INSTANT.test(expires) ? Date.parse(expires) : Number.NaN;
    if (expires !== undefined && Number.isNaN(expiresAtMs))
      found.push(`${at}.expires must be a time such as 2027-01-01T00:00:00Z`);
    problems.push(...found);
    if (found.length > 0 || hash === undefined || !grants.ok) return;
    const known: Principal = {
      id: String(principal),
      grants: grants.value,
      ...(expires !== undefined && { expiresAtMs }),
    };
    tokens.set(hash, { hash: Buffer.from(hash, "hex"), principal: known });
  });
  return problems.length > 0 ? { ok: false, problems } : { ok: true, value: tokens };
}

/** Throws an Error with everything that is wrong when the file cannot be used at the start. */
export function watchTokens(path: string, log: Logger): WatchedFiles<StaticTokens> {
  return watchFiles({
    what: "the tokens file",
    paths: [path],
    parse: ([content]) => readTokens(content ?? Buffer.alloc(0)),
    log,
  });
}

export function tokenJudge(file: { readonly value: StaticTokens }, now: () => number): TokenJudge {
  return {
    judge(token) {
      const hash = createHash("sha256").update(token).digest();
      // Looked up by its hash, which nobody can steer digit by digit; compared once more in constant time.
      const found = file.value.get(hash.toString("hex"));
      if (!found || !timingSafeEqual(found.hash, hash)) return undefined;
      const { expiresAtMs } = found.principal;
      if (expiresAtMs !== undefined && expiresAtMs <= now()) throw unauthenticated("the token has expired");
      return found.principal;
    },
  };
}
