/** The first list of a gateway that has just started: waited for as long as it is on its way. */
import { describe, expect, it } from "vitest";
import { Catalogue } from "../../../src/gateway/catalogue.js";
import { Bench } from "../../support/follower-bench.js";
import { stub } from "../../support/scripted-watch.js";

/** Longer than any test: whoever resolves before was told. */
const LONG_MS = 600_000;

function watched(arrived: Promise<void>): { settled: boolean } {
  const state = { settled: false };
  void arrived.then(() => (state.settled = true));
  return state;
}

describe("found behind the gateway: a category asked for at once was empty, for the catalogue was still on its way", () => {
  it("is there when the first list is whole", async () => {
    const bench = await new Bench().start();
    const catalogue = new Catalogue(bench.follower);
    const arrived = watched(catalogue.arrived(LONG_MS));
    bench.stream.snapshot([stub("s/a")], "", "r", false);
    await bench.clock.settle();
    expect(arrived.settled).toBe(false);
    expect(catalogue.tool("s/a")).toBeUndefined();
    bench.stream.snapshot([stub("s/b")], "t1").bookmark("t1");
    await bench.clock.settle();
    expect(arrived.settled).toBe(true);
    expect(catalogue.tools().map((t) => t.toolId)).toEqual(["s/a", "s/b"]);
  });

  it("is not waited for where it is there, or where the registry is away", async () => {
    const live = await new Bench().live("s/a");
    await new Catalogue(live.follower).arrived(LONG_MS);

    const away = await new Bench().start();
    const arrived = watched(new Catalogue(away.follower).arrived(LONG_MS));
    away.stream.fail("STORE_UNAVAILABLE");
    await away.clock.settle();
    expect(arrived.settled).toBe(true);
  });

  it("is not waited for for ever", async () => {
    const bench = await new Bench().start();
    await new Catalogue(bench.follower).arrived(1);
    expect(bench.follower.state.kind).toBe("connecting");
  });
});
