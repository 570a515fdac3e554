/** Whether the registry knows a caller, for what a gateway answers without asking it. */
import { createHash } from "node:crypto";
import { isAway } from "../away.js";
import type { RegistryLink } from "../registry.js";
import type { Caller } from "../words.js";

/** Whatever else a request asks of the registry is judged there each time. */
const BELIEVED_MS = 1_000;
const REMEMBERED = 10_000;

export class KnownCallers {
  /** When each was known last, by the digest of its token; the longest unseen first. */
  readonly #knownAtMs = new Map<string, number>();

  constructor(
    private readonly registry: Pick<RegistryLink, "greet">,
    private readonly nowMs: () => number,
  ) {}

  /** While the registry is away, those whom it knew are known. Rejects with RegistryError for anybody else. */
  async require(caller: Caller): Promise<void> {
    if (caller.token === undefined) return;
    const key = createHash("sha256").update(caller.token).digest("base64");
    const knownAtMs = this.#knownAtMs.get(key);
    if (knownAtMs !== undefined && this.nowMs() - knownAtMs < BELIEVED_MS) return;
    try {
      await this.registry.greet(caller);
    } catch (error) {
      if (isAway(error) && knownAtMs !== undefined) return;
      // Unknown now, or without a right to read: it counts no more when the registry goes away.
      if (!isAway(error)) this.#knownAtMs.delete(key);
      throw error;
    }
    this.#remember(key);
  }

  #remember(key: string): void {
    this.#knownAtMs.delete(key);
    this.#knownAtMs.set(key, this.nowMs());
    const [oldest] = this.#knownAtMs.keys();
    if (this.#knownAtMs.size > REMEMBERED && oldest !== undefined) this.#knownAtMs.delete(oldest);
  }
}
