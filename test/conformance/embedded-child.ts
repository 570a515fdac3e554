/** Commits without end into the folder it is given, and prints each revision once it was acknowledged. */
import { openEmbeddedStore } from "../../src/store/embedded/embedded-store.js";
import { logOf, partitionOf } from "./check.js";
import { grant, MovableClock, random, record, silent, step, tool } from "./values.js";

const [dataDir = ""] = process.argv.slice(2);
const window = { revisions: 50, bytes: 1_000_000 };
const store = await openEmbeddedStore({ dataDir, clock: new MovableClock(), random, logger: silent, window });
const name = `c${(await logOf(store).head()).revision}`;

async function write(writer: number): Promise<never> {
  for (let i = 0; ; i++) {
    const id = `${name}-${writer}-${i}`;
    const after = record(id, [tool(id, "one", "x".repeat(200))]);
    await partitionOf(store).blobs.put("default", [{ digest: id, bytes: Buffer.from(id), fetchedAtMs: 1 }]);
    const result = await logOf(store).commit(step(id, { after, leases: [grant(id, id, 3_600_000)] }));
    if (result.kind !== "committed") throw new Error(`refused: ${result.kind}`);
    process.stdout.write(`${result.position.revision} ${result.position.chain} ${id}\n`);
  }
}

await Promise.all([0, 1, 2, 3].map(write));
