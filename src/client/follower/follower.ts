import type { Availability, Stub } from "../../gen/toolcrib/v1/stub_pb.js";
import { RegistryError } from "../registry-error.js";
import type { Target } from "../target.js";
import { backoffMs, holdingTimers, type RandomSource, type Timers } from "../timers.js";
import { Alarm } from "./alarm.js";
import type { FollowedServer } from "./catalogue.js";
import { Holding } from "./holding.js";
import { Listeners } from "./listeners.js";
import { type FollowerOptions, targetsOf } from "./options.js";
import { type Heard, MessageReader } from "./reader.js";
import { overGrpc, type WatchSource } from "./source.js";
import type { FollowerEvents, FollowerState, StaleWhy } from "./state.js";
import { readStream, type StreamEnd } from "./stream.js";
import { verdictOn } from "./verdict.js";

const SILENCE_MS = 25_000;
/** Until a registry that gave a list says that it is current; it does so at once where it can. */
const CONFIRM_MS = 1_000;
/** A credential may be replaced: about this often it is tried again. */
const REFUSED_RETRY_MS = 30_000;

/**
 * A local catalogue of the tools under a filter that is right, or says that it is not: a list, then every change whole and in
 * order, over lost streams, dying replicas and broken histories. It holds one catalogue (two while a list is read again) and
 * no queue: listeners run while the stream waits.
 */
export class Follower {
  readonly #targets: readonly [Target, ...Target[]];
  readonly #options: FollowerOptions;
  readonly #timers: Timers;
  readonly #random: RandomSource;
  readonly #source: WatchSource;
  readonly #listeners = new Listeners();
  #state: FollowerState = { kind: "stopped" };
  readonly #held = new Holding();
  #at: number;
  /** Lost streams since the registry last said that the catalogue is current. */
  #failures = 0;
  #staleSince: number | undefined;
  #running: { readonly ending: AbortController; readonly ended: Promise<void> } | undefined;

  /** Throws TargetError and AccessError. */
  constructor(options: FollowerOptions = {}) {
    this.#options = options;
    this.#targets = targetsOf(options);
    this.#timers = options.timers ?? holdingTimers;
    this.#random = options.random ?? Math.random;
    this.#source = options.source ?? overGrpc;
    this.#at = Math.floor(this.#random() * this.#targets.length);
  }

  get state(): FollowerState {
    return this.#state;
  }

  /** Continues after what the catalogue holds, on any replica; empty while there is none, or it cannot be continued. */
  get resumeToken(): string {
    return this.#held.token;
  }

  /** The replica that is followed, or tried next. */
  get target(): Target {
    return this.#targets[this.#at % this.#targets.length] ?? this.#targets[0];
  }

  stub(toolId: string): Stub | undefined {
    return this.#held.catalogue?.stub(toolId);
  }

  /** All tools in tool_id order. The list never changes once given; a change makes another one. */
  stubs(): readonly Stub[] {
    return this.#held.catalogue?.stubs() ?? [];
  }

  /** Undefined for a server without tools here. */
  availability(serverId: string): Availability | undefined {
    return this.#held.catalogue?.availability(serverId);
  }

  /** The servers whose tools are here, in server_id order. */
  servers(): FollowedServer[] {
    return this.#held.catalogue?.servers() ?? [];
  }

  /** Returns how to take the listener back. Listeners run at once, and see the catalogue as the event left it. */
  on<N extends keyof FollowerEvents>(name: N, listener: (event: FollowerEvents[N]) => void): () => void {
    return this.#listeners.add(name, listener);
  }

  /** Follows until it is stopped or refused for good; does nothing while it follows. */
  start(): this {
    const { signal } = this.#options;
    if (this.#running || signal?.aborted) return this;
    const ending = new AbortController();
    const stop = (): void => void this.stop();
    signal?.addEventListener("abort", stop, { once: true });
    // Begins a moment later: whoever hears of the start may already stop it.
    const ended = Promise.resolve()
      .then(() => this.#run(ending.signal))
      .finally(() => {
        signal?.removeEventListener("abort", stop);
        if (this.#running?.ending === ending) this.#running = undefined;
      });
    this.#running = { ending, ended };
    this.#fall("disconnected");
    return this;
  }

  /** The catalogue stays readable; `start` goes on from where it was. */
  async stop(): Promise<void> {
    const running = this.#running;
    this.#running = undefined;
    running?.ending.abort();
    this.#staleSince ??= this.#timers.now();
    this.#enter({ kind: "stopped" });
    await running?.ended;
  }

  /**
   * Once there is a catalogue, and it is known whether it is current: answers `live` or `stale`. Rejects with RegistryError when
   * it is refused, and when it is stopped before.
   */
  ready(): Promise<FollowerState> {
    return new Promise((resolve, reject) => {
      const settled = (state: FollowerState): boolean => {
        if (state.kind === "live" || state.kind === "stale") resolve(state);
        else if (state.kind === "refused") reject(state.error);
        else if (state.kind === "stopped") reject(new RegistryError("the follower is stopped", { code: "CANCELLED" }));
        else return false;
        return true;
      };
      if (settled(this.#state)) return;
      const forget = this.on("state", (state) => {
        if (settled(state)) forget();
      });
    });
  }

  async #run(ending: AbortSignal): Promise<void> {
    while (!ending.aborted) {
      const resumed = this.#held.token !== "";
      const end = await this.#follow(ending);
      if (ending.aborted) return;
      const waitMs = this.#judge(end, resumed);
      if (waitMs === undefined) return;
      await pause(this.#timers, waitMs, ending);
    }
  }

  /** One stream, until it ends. */
  async #follow(ending: AbortSignal): Promise<StreamEnd> {
    const { namespace = "", filter = {}, silenceMs = SILENCE_MS } = this.#options;
    const reader = new MessageReader(this.#held.token !== "");
    const proof = new Alarm(this.#timers, () => this.#fall(this.#state.kind === "live" ? "behind" : "unconfirmed"));
    const end = await readStream(
      {
        source: this.#source,
        target: this.target,
        request: { namespace, filter, ...this.#held.place },
        timers: this.#timers,
        silenceMs,
        take: (message) => {
          const heard = reader.read(message);
          this.#take(heard);
          if (heard.kind === "snapshot" && heard.token !== "") proof.set(CONFIRM_MS);
          if (heard.kind === "bookmark") proof.set(silenceMs);
        },
        onSilent: (error) => this.#fall("silent", error),
      },
      ending,
    );
    proof.off();
    return end;
  }

  #take(heard: Heard): void {
    switch (heard.kind) {
      case "snapshot-part":
        if (!this.#held.catalogue) this.#enter({ kind: "snapshot" });
        return;
      case "snapshot":
        if (!this.#held.catalogue) this.#enter({ kind: "snapshot" });
        this.#listeners.tell("change", this.#held.list(heard));
        if (heard.token === "") this.#fall("registry");
        return;
      case "change":
        this.#listeners.tell("change", this.#held.change(heard));
        this.#refreshRevision();
        return;
      case "bookmark":
        this.#held.bookmark(heard);
        this.#failures = 0;
        this.#staleSince = undefined;
        this.#enter({ kind: "live", revision: heard.revision, at: this.#timers.now() });
    }
  }

  /** Milliseconds until the next stream; undefined for never. */
  #judge({ error, why, heard }: StreamEnd, resumed: boolean): number | undefined {
    const verdict = verdictOn(error, resumed);
    switch (verdict.kind) {
      case "refused":
        return this.#refuse(error);
      case "unauthenticated":
        // A credential that just was good may have been replaced already.
        if (heard) return this.#goOn(error, "disconnected");
        return this.#refuse(error, this.target.access?.token && REFUSED_RETRY_MS * (0.5 + this.#random() / 2));
      case "relist":
        this.#held.relist(verdict.cause);
        this.#fall("relist", error);
        this.#listeners.tell("relist", { cause: verdict.cause, error });
        return this.#backoff(error);
      case "too-slow":
        this.#fall("too-slow", error);
        return this.#backoff(error);
      case "resume":
        return this.#goOn(error, why);
    }
  }

  /** With the next replica. */
  #goOn(error: RegistryError, why: StreamEnd["why"]): number {
    this.#at++;
    this.#fall(why, error);
    return this.#backoff(error);
  }

  #refuse(error: RegistryError, retryMs?: number): number | undefined {
    this.#staleSince ??= this.#timers.now();
    if (retryMs !== undefined) this.#at++;
    this.#enter({ kind: "refused", error, ...(retryMs !== undefined && { retryMs }) });
    return retryMs;
  }

  /** The wait grows with every round over all replicas; only when all were asked does one's own wish for a pause hold. */
  #backoff({ retryAfterMs = 0 }: RegistryError): number {
    const replicas = this.#targets.length;
    const round = Math.floor(this.#failures++ / replicas);
    const asked = this.#failures % replicas === 0 ? retryAfterMs : 0;
    return backoffMs(round, this.#random, asked);
  }

  /** The catalogue, if there is one, is not known to be current. */
  #fall(why: StaleWhy, error?: RegistryError): void {
    this.#staleSince ??= this.#timers.now();
    const cause = error && { error };
    if (!this.#held.catalogue) return this.#enter({ kind: "connecting", ...cause });
    this.#enter({ kind: "stale", since: this.#staleSince, why, revision: this.#held.revision, ...cause });
  }

  #refreshRevision(): void {
    const { revision } = this.#held;
    if (this.#state.kind === "live" || this.#state.kind === "stale") this.#enter({ ...this.#state, revision });
  }

  #enter(state: FollowerState): void {
    // A listener may have stopped it in the midst of a message.
    if (!this.#running && state.kind !== "stopped") return;
    const before = this.#state;
    this.#state = Object.freeze(state);
    if (!sameState(before, state)) this.#listeners.tell("state", state);
  }
}

/** Whether there is nothing new to tell. */
function sameState(a: FollowerState, b: FollowerState): boolean {
  const why = (s: FollowerState): unknown => (s.kind === "stale" ? s.why : undefined);
  const error = (s: FollowerState): unknown => ("error" in s ? s.error : undefined);
  return a.kind === b.kind && why(a) === why(b) && error(a) === error(b);
}

function pause(timers: Timers, ms: number, ending: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (ending.aborted) return resolve();
    const end = (): void => {
      cancel();
      ending.removeEventListener("abort", end);
      resolve();
    };
    const cancel = timers.after(ms, end);
    ending.addEventListener("abort", end, { once: true });
  });
}

/** A follower of a registry: `createFollower({ targets: ["a:7850", "b:7850"] }).start()`. Throws TargetError and AccessError. */
export function createFollower(options: FollowerOptions = {}): Follower {
  return new Follower(options);
}
