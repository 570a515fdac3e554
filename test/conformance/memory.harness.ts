import type { Random } from "../../src/catalogue/ports.js";
import { MemoryStore } from "../../src/store/memory/memory-store.js";
import type { OpenHarness } from "./store.suite.js";
import { MovableClock, random } from "./values.js";

/** `seed` stands in for the store's randomness. */
export function memoryHarness(seed: Random): OpenHarness {
  return async (window) => {
    const clock = new MovableClock();
    const make = () => new MemoryStore(clock, seed, window ? { window } : {});
    const store = make();
    return {
      store,
      other: store.attach(),
      fresh: async () => make(),
      elapse: async (ms) => clock.advance(ms),
      close: () => store.close(),
    };
  };
}

export const openMemory: OpenHarness = memoryHarness(random);
