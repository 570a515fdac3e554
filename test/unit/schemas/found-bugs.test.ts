import { describe, expect, it } from "vitest";
import { LIMITS } from "../../../src/domain/limits.js";
import {
  definition,
  digestOfDefinition,
  HandDirectory,
  HandUpstream,
  listingOf,
  NAMESPACE,
  recordOf,
  SILENT,
  toolOf,
  CountedBlobs,
} from "../../support/records.js";
import { loaderBench } from "../../support/schemas.js";
import { createDefinitions } from "../../../src/schemas/definitions.js";
import { createLister } from "../../../src/schemas/lister.js";
import { createLoader } from "../../../src/schemas/loader.js";
import { stubCodec } from "../../../src/store/codec/stub.js";
import { MemoryStore } from "../../../src/store/memory/memory-store.js";
import { FakeClock, SeededRandom } from "../../support/fake-clock.js";

const ALPHA = definition("alpha");
const NEW = definition("alpha", "something new");
const D1 = digestOfDefinition(ALPHA),
  D2 = digestOfDefinition(NEW);
const introspected = (digest: string) =>
  recordOf([toolOf("alpha", { digest, declared: false })], { source: "introspected" });

/** One test for each bug that was found in the loader by reading. */
describe("bugs that were found", () => {
  it("B: asked by digest, another digest is never answered", async () => {
    const b = loaderBench({ intake: { listed: async () => b.directory.set(introspected(D2)) } });
    b.directory.set(introspected(D1));
    b.upstream.answer = () => listingOf([NEW]);
    const answer = await b.loader
      .full({
        namespace: NAMESPACE,
        key: { kind: "digest", digest: D1 },
        view: "full",
        deadlineMs: LIMITS.loadCallerMs,
      })
      .catch((e) => e);
    expect(answer.digest === undefined || answer.digest === D1, `asked ${D1}, answered ${answer.digest}`).toBe(true);
  });

  it("I (P10): LIVE answers the bytes first seen, also when memory has no room", async () => {
    const clock = new FakeClock();
    const store = new MemoryStore(clock, new SeededRandom(1));
    const blobs = new CountedBlobs(store.partitions[0]!.blobs);
    const directory = new HandDirectory();
    const upstream = new HandUpstream();
    const first = ALPHA;
    const spaced = new TextEncoder().encode(
      ` ${new TextDecoder().decode(ALPHA)}`.replace('{"name"', '{ "name"').trim(),
    );
    expect(digestOfDefinition(spaced)).toBe(D1);
    await blobs.put(NAMESPACE, [{ digest: D1, bytes: first, fetchedAtMs: 1 }]);
    const definitions = createDefinitions({ blobsOf: () => blobs, clock, logger: SILENT, memoryBytes: 100 });
    const lister = createLister({
      upstream,
      directory,
      intake: { listed: async () => {}, failed: async () => {} },
      definitions,
      clock,
      logger: SILENT,
    });
    const loader = createLoader({ definitions, directory, lister, codec: stubCodec, clock });
    directory.set(recordOf([toolOf("alpha")]));
    upstream.answer = () => listingOf([spaced]);
    const answer = await loader.full({
      namespace: NAMESPACE,
      key: { kind: "tool", toolId: "srv/alpha" },
      view: "full",
      deadlineMs: 1_000,
    });
    expect(Buffer.from(answer.definition).toString()).toBe(Buffer.from(first).toString());
  });
});
