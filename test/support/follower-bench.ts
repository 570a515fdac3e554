/** A follower over streams that the test speaks into and a clock that it moves, and all that it told. */
import { expect, onTestFinished } from "vitest";
import { createFollower, type Follower } from "../../src/client/follower/follower.js";
import type { FollowerOptions } from "../../src/client/follower/options.js";
import type { CatalogueChange, FollowerState } from "../../src/client/follower/state.js";
import { parseTarget } from "../../src/client/target.js";
import { EventType } from "../../src/gen/toolcrib/v1/registry_service_pb.js";
import { FakeClock, SeededRandom } from "./fake-clock.js";
import { ScriptedSource, stub, timersOf } from "./scripted-watch.js";

export const SECOND = 1_000;

export class Bench {
  readonly clock = new FakeClock();
  readonly source = new ScriptedSource();
  readonly follower: Follower;
  readonly states: string[] = [];
  readonly changes: CatalogueChange[] = [];
  readonly relists: string[] = [];

  constructor(options: FollowerOptions = {}) {
    const random = new SeededRandom(11);
    this.follower = createFollower({
      targets: ["a:1", "b:1"].map(parseTarget),
      timers: timersOf(this.clock),
      random: () => random.next(),
      source: this.source.open,
      ...options,
    });
    this.follower.on("state", (state) => this.states.push(nameOf(state)));
    this.follower.on("change", (change) => this.changes.push(change));
    this.follower.on("relist", ({ cause }) => this.relists.push(cause));
    onTestFinished(() => this.follower.stop());
  }

  get stream() {
    return this.source.last;
  }

  get ids(): string[] {
    return this.follower.stubs().map((s) => s.toolId);
  }

  /** `TYPE id` of all events so far. */
  get told(): string[] {
    return this.changes.flatMap((c) => c.events.map((e) => `${EventType[e.type]} ${e.toolId || e.serverId}`));
  }

  async start(): Promise<this> {
    this.follower.start();
    await this.clock.settle();
    return this;
  }

  /** Live with these tools at token t1. */
  async live(...toolIds: string[]): Promise<this> {
    await this.start();
    this.stream
      .snapshot(
        toolIds.map((id) => stub(id)),
        "t1",
      )
      .bookmark("t1");
    await this.clock.settle();
    expect(this.follower.state.kind).toBe("live");
    return this;
  }

  /** The next stream, after the pause before it. */
  async next() {
    const before = this.source.streams.length;
    await this.clock.advance(SECOND);
    expect(this.source.streams.length).toBe(before + 1);
    return this.stream;
  }
}

function nameOf(state: FollowerState): string {
  return state.kind === "stale" ? `stale ${state.why}` : state.kind;
}
