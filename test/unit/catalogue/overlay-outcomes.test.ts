/** What came of calls, counted for each version of an overlay. */
import { beforeEach, describe, expect, it } from "vitest";
import { OverlayOutcomes } from "../../../src/catalogue/overlays/outcomes.js";
import { type Overlay, versionOf } from "../../../src/domain/overlay.js";
import { MemoryStore } from "../../../src/store/memory/memory-store.js";
import { overlayCodec } from "../../../src/store/codec/overlay.js";
import { FakeClock, SeededRandom } from "../../support/fake-clock.js";
import { SILENT } from "../../support/records.js";

const texts = (briefDescription: string) => ({ briefDescription, keywords: [], useWhen: "" });
const overlay = (trial: boolean, words = "new"): Overlay => ({ toolName: "close", texts: texts(words), madeFor: texts("old"), digest: "d", trial, by: "op", atMs: 1 });

let clock: FakeClock;
let current: Overlay | undefined;
let made: () => OverlayOutcomes;
beforeEach(() => {
  clock = new FakeClock();
  const notes = new MemoryStore(clock, new SeededRandom(1)).attach().partitions[0]?.notes;
  if (!notes) throw new Error("no partition");
  current = overlay(true);
  made = () =>
    new OverlayOutcomes({
      notesOf: () => notes,
      overlayOf: (_namespace, toolId) => (toolId === "shop/close" ? current : undefined),
      codec: overlayCodec,
      clock,
      logger: SILENT,
    });
});
const version = () => (current ? versionOf(current) : "");
const countsOf = async (outcomes: OverlayOutcomes) => (await outcomes.of("default", "shop"))("shop/close", version());

describe("outcomes of an overlay", () => {
  it("are counted by the label that was shown, and added up over replicas", async () => {
    const [a, b] = [made(), made()];
    for (let i = 0; i < 5; i++) a.count("default", "shop/close", version(), i > 0);
    b.count("default", "shop/close", "", true);
    b.count("default", "shop/close", "", false);
    expect(await countsOf(a), "at once where it was counted").toMatchObject({ overlaySuccesses: 4, overlayFailures: 1, ownSuccesses: 0, ownFailures: 0 });
    await clock.advance(2_100);
    const all = { overlaySuccesses: 4, overlayFailures: 1, ownSuccesses: 1, ownFailures: 1 };
    expect(await countsOf(a)).toMatchObject(all);
    expect(await countsOf(b)).toMatchObject(all);
    await a.stop();
    await b.stop();
    expect(await countsOf(made()), "nothing is counted twice").toMatchObject(all);
  });

  it("are stored when a replica stops", async () => {
    const outcomes = made();
    outcomes.count("default", "shop/close", version(), true);
    const stopped = outcomes.stop();
    await clock.advance(10);
    await stopped;
    expect(await countsOf(made())).toMatchObject({ overlaySuccesses: 1 });
  });

  it("of other versions, of tools without an overlay, and of the own label outside of a trial are not counted", async () => {
    const outcomes = made();
    outcomes.count("default", "shop/close", "o-other", true);
    outcomes.count("default", "shop/open", "", true);
    outcomes.count("default", "nonsense", "", true);
    current = overlay(false);
    outcomes.count("default", "shop/close", "", true);
    expect(await countsOf(outcomes)).toMatchObject({ overlaySuccesses: 0, overlayFailures: 0, ownSuccesses: 0, ownFailures: 0 });
    outcomes.count("default", "shop/close", version(), true);
    await clock.advance(2_100);
    // Another overlay begins at nothing, and what was counted for the old one goes.
    current = overlay(true, "newer");
    expect(await countsOf(outcomes)).toMatchObject({ overlaySuccesses: 0 });
    outcomes.count("default", "shop/close", version(), false);
    await clock.advance(2_100);
    expect(await countsOf(made())).toMatchObject({ overlaySuccesses: 0, overlayFailures: 1 });
    await outcomes.stop();
  });
});
