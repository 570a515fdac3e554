/** What `watch` says of troubles. */
import { expect, it } from "vitest";
import { sayTrouble } from "../../../src/cli/watch.js";
import type { FollowerState, StaleWhy } from "../../../src/client/follower/state.js";
import { RegistryError } from "../../../src/client/registry-error.js";

function bench(storeAway: boolean) {
  const said: string[] = [];
  let tell: (state: FollowerState) => void = () => {};
  const on = (name: string, listener: (state: FollowerState) => void) => void (name === "state" && (tell = listener));
  sayTrouble({ on } as unknown as Parameters<typeof sayTrouble>[0], async () => storeAway, (text) => said.push(text));
  const error = new RegistryError("nothing is heard from the registry at x:1", { code: "DEADLINE_EXCEEDED" });
  const enter = async (why: StaleWhy | "live") => {
    tell(why === "live" ? { kind: "live", revision: "r", at: 0 } : { kind: "stale", since: 0, why, revision: "r", error });
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { said, enter };
}

const store = [
  "the registry cannot reach its store: this list is the last that it knows; trying again",
  "the registry reaches its store again: up to date again",
];

it.each(["silent", "registry", "unconfirmed"] as const)("tells of a store that is away, where that is why (%s)", async (why) => {
  const { said, enter } = bench(true);
  for (const state of [why, "silent", "live"] as const) await enter(state);
  expect(said).toEqual(store);
});

it("tells of silence and lost connections where it is not", async () => {
  const { said, enter } = bench(false);
  for (const state of ["silent", "disconnected", "too-slow", "live"] as const) await enter(state);
  expect(said).toEqual(["nothing is heard from the registry at x:1; trying again", "connected again"]);
});
