import { setTimeout as delay } from "node:timers/promises";
import type { RegistryConnection } from "../client/connection.js";
import { RegistryError, registryError } from "../client/registry-error.js";
import { backoffMs } from "../client/timers.js";
import type { Change, WatchRequest, WatchResponse } from "../gen/toolcrib/v1/registry_service_pb.js";

/** Bookmarks come every 10 s: a stream that is silent for longer is a connection that died without a word. */
const SILENCE_MS = 35_000;

export interface FollowHandlers {
  /** The snapshot is complete: this many tools are there. */
  onSnapshot(tools: number): void;
  /** One whole change, in its parts. */
  onChange(parts: readonly Change[]): void;
  /** `missed`: the list was or will be read again, and what changed between is not told. */
  onTrouble(trouble: "missed" | "away", error: RegistryError): void;
  onRecovery(): void;
}

/** Follows one Watch over reconnects, each change once, until it is aborted. */
export class Follower {
  #token = "";
  #known = 0;
  #greeted = false;
  #failures = 0;
  /** Parts of a change whose last part has not come: told whole, or not at all when it comes again after a reconnect. */
  #parts: Change[] = [];

  constructor(
    private readonly registry: RegistryConnection,
    private readonly request: Pick<WatchRequest, "namespace"> & { readonly filter?: object },
    private readonly handlers: FollowHandlers,
  ) {}

  /** Rejects where the first snapshot could not be read, or where trying again cannot help. */
  async run(ending: AbortSignal): Promise<void> {
    while (!ending.aborted) {
      const error = await this.#follow(ending);
      if (ending.aborted) return;
      if (!this.#greeted) throw error;
      await this.#recover(error, ending);
    }
  }

  /** One Watch, until it ends; answers why. */
  async #follow(ending: AbortSignal): Promise<RegistryError> {
    const silence = new AbortController();
    const signal = AbortSignal.any([ending, silence.signal]);
    let timer = setTimeout(() => silence.abort(), SILENCE_MS);
    this.#parts = [];
    try {
      for await (const message of this.registry.watch({ ...this.request, resumeToken: this.#token }, signal)) {
        clearTimeout(timer);
        timer = setTimeout(() => silence.abort(), SILENCE_MS);
        if (this.#failures > 0) this.handlers.onRecovery();
        this.#failures = 0;
        this.#heard(message);
      }
      return new RegistryError("the stream ended", { code: "UNAVAILABLE" });
    } catch (error) {
      return registryError(error);
    } finally {
      clearTimeout(timer);
    }
  }

  #heard({ message }: WatchResponse): void {
    if (message.case === "snapshot") {
      this.#known += message.value.stubs.length;
      if (!message.value.last) return;
      this.handlers.onSnapshot(this.#known);
      this.#known = 0;
      this.#greeted = true;
      this.#token = message.value.resumeToken;
    } else if (message.case === "change") {
      this.#parts.push(message.value);
      if (message.value.resumeToken === "") return;
      this.#token = message.value.resumeToken;
      this.handlers.onChange(this.#parts);
      this.#parts = [];
    } else if (message.case === "bookmark") this.#token = message.value.resumeToken;
  }

  async #recover(error: RegistryError, ending: AbortSignal): Promise<void> {
    this.#known = 0;
    if (error.reason === "RELIST_REQUIRED" || error.reason === "INVALID_TOKEN") {
      this.#token = "";
      return this.handlers.onTrouble("missed", error);
    }
    if (error.reason === "WATCHER_TOO_SLOW") {
      this.#token = error.metadata["resume_token"] ?? this.#token;
      return;
    }
    if (!error.transient) throw error;
    if (this.#failures === 0) this.handlers.onTrouble("away", error);
    this.#failures++;
    const ms = backoffMs(this.#failures, Math.random, error.retryAfterMs);
    await delay(ms, undefined, { signal: ending }).catch(() => undefined);
  }
}
