import type { OpenHarness } from "./store.suite.js";
import { MemoryStore } from "../../src/store/memory/memory-store.js";
import { MovableClock, random } from "./values.js";

export const openMemory: OpenHarness = async (window) => {
  const clock = new MovableClock();
  const make = () => new MemoryStore(clock, random, window ? { window } : {});
  const store = make();
  return {
    store,
    other: store.attach(),
    fresh: async () => make(),
    elapse: async (ms) => clock.advance(ms),
    close: () => store.close(),
  };
};
