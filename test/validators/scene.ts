/** Two recorded replicas on one memory store and a clock that stands still until the script moves it. */
import { MemoryStore } from "../../src/store/memory/memory-store.js";
import { FakeClock, SeededRandom } from "../support/fake-clock.js";
import type { Client } from "./client.js";
import type { Facts, History } from "./history.js";
import { Recorder } from "./recorder.js";
import { type Broken, Site } from "./site.js";
import { SwitchedStore } from "./switched-store.js";

export interface SceneParts {
  readonly facts?: Partial<Facts>;
  /** Of replica b. */
  readonly broken?: Broken;
  /** Of both replicas. */
  readonly everywhere?: Broken;
}

export class Scene {
  readonly clock = new FakeClock();
  readonly random = new SeededRandom(7);
  readonly recorder: Recorder;
  readonly site: Site;
  readonly store: SwitchedStore;
  readonly a: Client;
  readonly b: Client;

  constructor({ facts, everywhere = {}, broken = everywhere }: SceneParts = {}) {
    const { clock, random } = this;
    this.recorder = new Recorder(facts, () => clock.monotonic());
    this.store = new SwitchedStore(new MemoryStore(clock, random), () => new MemoryStore(clock, random));
    this.site = new Site({ clock, random, recorder: this.recorder, drive: (work) => this.#drive(work) });
    this.a = this.site.replica("a", this.store.attach(), everywhere);
    this.b = this.site.replica("b", this.store.attach(), broken);
  }

  /** Lets everything happen that is about to. */
  settle(): Promise<void> {
    return this.clock.advance(20);
  }

  advance(ms: number): Promise<void> {
    return this.clock.advance(ms);
  }

  /** Stops the replicas. */
  async end(): Promise<History> {
    const history = this.recorder.history();
    const stopped = this.site.stop();
    await this.clock.advance(2_000);
    await stopped;
    return history;
  }

  async #drive<T>(work: Promise<T>): Promise<T> {
    let done = false;
    const settled = work.finally(() => void (done = true));
    settled.catch(() => undefined);
    for (let turn = 0; turn < 1_000 && !done; turn++) await this.clock.advance(turn < 100 ? 1 : 100);
    return settled;
  }
}
