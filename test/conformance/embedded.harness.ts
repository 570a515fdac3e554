import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Store } from "../../src/catalogue/ports.js";
import { openEmbeddedStore } from "../../src/store/embedded/embedded-store.js";
import type { OpenHarness } from "./store.suite.js";
import { MovableClock, random, silent } from "./values.js";

export async function temporaryFolder(): Promise<string> {
  return mkdtemp(join(tmpdir(), "toolcrib-store-"));
}

export const openEmbedded: OpenHarness = async (window) => {
  const clock = new MovableClock();
  const opened: { store: Store; dataDir: string }[] = [];
  const open = async (): Promise<Store> => {
    const dataDir = await temporaryFolder();
    const parts = { dataDir, clock, random, logger: silent };
    const store = await openEmbeddedStore(window ? { ...parts, window } : parts);
    opened.push({ store, dataDir });
    return store;
  };
  const store = await open();
  return {
    store,
    other: store,
    fresh: open,
    elapse: async (ms) => clock.advance(ms),
    async close() {
      for (const { store: each, dataDir } of opened) {
        await each.close();
        await rm(dataDir, { recursive: true });
      }
    },
  };
};
