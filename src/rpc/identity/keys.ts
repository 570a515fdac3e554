/** The keys that JWTs are judged by, from a file or from their issuer, fetched again as they rotate. */
import type { JSONWebKeySet, JWK } from "jose";
import type { Logger } from "../../catalogue/ports.js";
import { alsoAllowing, type EgressPolicy } from "../../domain/admission/egress.js";
import { type Parsed, watchFiles } from "../../files/watched-file.js";
import { createEgress, type Egress, type Resolve } from "../../upstream/egress.js";
import { place } from "../../upstream/failures.js";

export interface Keys {
  /** Undefined while they could never be fetched. */
  readonly current: JSONWebKeySet | undefined;
  /** Looks again, unless it did a moment ago; answers whether other keys are here now. */
  refresh(): Promise<boolean>;
  onChange(listener: () => void): () => void;
  close(): void;
}

/** How an issuer is reached: over the registry's one way out. */
export interface WayOut {
  readonly policy: EgressPolicy;
  /** The system's resolver if unsaid. */
  readonly resolve?: Resolve | undefined;
}

const KEYS = 100;
const MAX_BYTES = 256 * 1024;
const FETCH_MS = 5_000;
/** A key that was taken away at the issuer is believed no longer than this. */
const FETCH_EVERY_MS = 300_000;
/** Tokens with invented key ids must not make the registry call their issuer for each. */
const COOLDOWN_MS = 10_000;
/** Without any keys nobody gets in: that is worth trying sooner. */
const COOLDOWN_WITHOUT_KEYS_MS = 1_000;

/** Only public keys count: a secret in the set would make everybody who reads it a signer. */
export function readKeySet(content: Buffer): Parsed<JSONWebKeySet> {
  let set: unknown;
  try {
    set = JSON.parse(content.toString("utf8"));
  } catch {
    return { ok: false, problems: ["it is not JSON"] };
  }
  const keys = typeof set === "object" && set !== null ? (set as { keys?: unknown }).keys : undefined;
  if (!Array.isArray(keys) || keys.length === 0 || keys.length > KEYS) {
    return { ok: false, problems: [`it must be a JWK Set, {"keys": [...]}, of 1 to ${KEYS} keys`] };
  }
  const problems = keys.flatMap((key, i) => keyProblems(`keys[${i}]`, key));
  return problems.length > 0 ? { ok: false, problems } : { ok: true, value: { keys: keys as JWK[] } };
}

function keyProblems(at: string, key: unknown): string[] {
  if (typeof key !== "object" || key === null) return [`${at} must be an object`];
  const { kty, d, k } = key as Record<string, unknown>;
  if (kty === "oct" || k !== undefined) return [`${at} is a shared secret: only public keys are taken`];
  if (d !== undefined) return [`${at} is a private key: publish its public part alone`];
  return typeof kty === "string" ? [] : [`${at} has no kty`];
}

/**
 * `source` is a path, or a URL: https, or http on loopback. Throws an Error when a file cannot be used at the start, and
 * when the URL is one that is never dialled.
 */
export function watchKeys(source: string, log: Logger, way: WayOut): Keys {
  return /^https?:\/\//.test(source) ? fetchedKeys(source, log, way) : fileKeys(source, log);
}

/** The operator named the URL, so its host is allowed, wherever it is; what is never dialled is not dialled for him either. */
function fetchedKeys(url: string, log: Logger, { policy, resolve }: WayOut): Keys {
  const egress = createEgress(alsoAllowing(policy, url), resolve);
  const reason = egress.refusal(url);
  if (reason === undefined) return new FetchedKeys(url, egress, log);
  egress.close();
  throw new Error(`--jwt-jwks (TOOLCRIB_JWT_JWKS) cannot be fetched: ${reason}`);
}

function fileKeys(path: string, log: Logger): Keys {
  const parse = ([content]: readonly Buffer[]): Parsed<JSONWebKeySet> => readKeySet(content ?? Buffer.alloc(0));
  const file = watchFiles({ what: "the key set", paths: [path], parse, log });
  return {
    get current() {
      return file.value;
    },
    // The file is looked at every second anyway.
    refresh: () => Promise.resolve(false),
    onChange: (listener) => file.onChange(listener),
    close: () => file.close(),
  };
}

class FetchedKeys implements Keys {
  current: JSONWebKeySet | undefined;
  private text = "";
  private fetching: Promise<boolean> | undefined;
  private fetchedAtMs = Number.NEGATIVE_INFINITY;
  private readonly listeners = new Set<() => void>();
  private readonly timer: NodeJS.Timeout;
  private readonly ending = new AbortController();

  constructor(
    private readonly url: string,
    private readonly egress: Egress,
    private readonly log: Logger,
  ) {
    this.timer = setInterval(() => void this.fetchShared(), FETCH_EVERY_MS).unref();
    void this.fetchShared();
  }

  refresh(): Promise<boolean> {
    const cooldownMs = this.current ? COOLDOWN_MS : COOLDOWN_WITHOUT_KEYS_MS;
    const tooSoon = performance.now() - this.fetchedAtMs < cooldownMs;
    return tooSoon && !this.fetching ? Promise.resolve(false) : this.fetchShared();
  }

  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  close(): void {
    clearInterval(this.timer);
    this.ending.abort();
    this.egress.close();
    this.listeners.clear();
  }

  private fetchShared(): Promise<boolean> {
    this.fetching ??= this.fetch().finally(() => {
      this.fetching = undefined;
    });
    return this.fetching;
  }

  private async fetch(): Promise<boolean> {
    this.fetchedAtMs = performance.now();
    try {
      const content = await download(this.egress, this.url, this.ending.signal);
      const parsed = readKeySet(content);
      if (!parsed.ok) throw new Error(parsed.problems.join("; "));
      const text = content.toString("utf8");
      if (text === this.text) return false;
      this.text = text;
      this.current = parsed.value;
      this.log.info({ keys: parsed.value.keys.length }, "the key set changed and is in force");
      for (const listener of [...this.listeners]) listener();
      return true;
    } catch (error) {
      if (this.ending.signal.aborted) return false;
      const meanwhile = this.current ? "known keys stay in force" : "nobody is let in by a JWT until it is";
      this.log.error({ err: error }, `the key set cannot be fetched: ${meanwhile}`);
      return false;
    }
  }
}

async function download(egress: Egress, url: string, ending: AbortSignal): Promise<Buffer> {
  const signal = AbortSignal.any([ending, AbortSignal.timeout(FETCH_MS)]);
  const headers = { accept: "application/json" };
  const response = await egress.request(url, { method: "GET", headers, purpose: "the request for the key set" }, signal);
  if (response.status === 200) return response.read(MAX_BYTES);
  response.discard();
  const moved = response.status >= 300 && response.status < 400 ? ", and redirects are not followed" : "";
  throw new Error(`${place(url)} answered the request for the key set with HTTP ${response.status}${moved}`);
}
