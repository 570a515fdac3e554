import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openStore } from "../../../src/store/open.js";
import * as v from "../../conformance/values.js";

const parts = { clock: new v.MovableClock(), random: v.random, logger: v.silent, dataDir: "/nowhere" };

test("a setting names the store", async () => {
  const dataDir = await mkdtemp(join(tmpdir(), "toolcrib-open-"));
  try {
    for (const setting of ["memory", "embedded"]) {
      const store = await openStore(setting, { ...parts, dataDir, partitions: 2 });
      expect([store.kind, store.partitions.length]).toEqual([setting, 2]);
      expect((await v.fill(store.partitions[1]!.log, 1)).partition).toBe(1);
      await store.close();
    }
  } finally {
    await rm(dataDir, { recursive: true });
  }
});

test.each([
  ["etcd", "must be memory, embedded, or a redis:// or rediss:// URL, not 'etcd'"],
  ["", "not ''"],
  ["http://user:secret-word@host", "not the given one"],
  ["redis:", "must be redis://host[:port][/db]"],
])("the setting %j is refused in one sentence", async (setting, sentence) => {
  await expect(openStore(setting, parts)).rejects.toThrow(sentence);
});
