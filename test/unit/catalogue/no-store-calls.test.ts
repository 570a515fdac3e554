import { afterEach, expect, test } from "vitest";
import type { PartitionStore, Store } from "../../../src/catalogue/ports.js";
import type { Registry } from "../../../src/catalogue/registry.js";
import { UpstreamError } from "../../../src/catalogue/upstream-port.js";
import { everything } from "../../../src/domain/filter.js";
import { createDefinitions } from "../../../src/schemas/definitions.js";
import { createLoader } from "../../../src/schemas/loader.js";
import type { Directory } from "../../../src/schemas/ports.js";
import { stubCodec } from "../../../src/store/codec/stub.js";
import { declare, tool, watch, World } from "../../support/replica.js";
import { silentLogger } from "../../support/upstream.js";

let world: World | undefined;
afterEach(() => world?.stop());

/** The same store, which names every call that it gets. */
function counted(store: Store, calls: string[]): Store {
  const port = <P extends object>(name: string, inner: P): P =>
    new Proxy(inner, {
      get(target, key) {
        const value: unknown = Reflect.get(target, key);
        if (typeof value !== "function") return value;
        return (...args: unknown[]): unknown => {
          calls.push(`${name}.${String(key)}`);
          return Reflect.apply(value, target, args) as unknown;
        };
      },
    });
  const partitions = store.partitions.map(
    (p): PartitionStore => ({
      partition: p.partition,
      log: port("log", p.log),
      leases: port("leases", p.leases),
      blobs: port("blobs", p.blobs),
      notes: port("notes", p.notes),
    }),
  );
  return { kind: store.kind, partitions, close: () => store.close() };
}

function withLoader(registry: Registry, at: World): void {
  const directory: Directory = {
    server: (namespace, id) => registry.partitionOf(namespace).live().history.server(namespace, id)?.record,
    holderOf: () => undefined,
    stale: () => false,
  };
  const blobsOf = (namespace: string) => registry.partitionOf(namespace).deps.store.blobs;
  const definitions = createDefinitions({ blobsOf, clock: at.clock, logger: silentLogger });
  const nobody = () => Promise.reject(new UpstreamError("connect", "nobody is there"));
  const lister = { list: nobody, settled: () => Promise.resolve() };
  registry.useLoader(createLoader({ definitions, directory, lister, codec: stubCodec, clock: at.clock }));
}

test("P11: reads that memory can answer make no store call", async () => {
  const here = new World();
  world = here;
  const calls: string[] = [];
  const registry = await here.replica(counted(here.memory.attach(), calls));
  withLoader(registry, here);
  await here.run(registry.register(declare("files", [tool("read"), tool("write")])));
  const schema = {
    namespace: "",
    key: { kind: "tool", toolId: "files/read" },
    view: "full",
    minRevision: "",
    deadlineMs: 1_000,
  } as const;
  const first = await here.run(registry.schema(schema));
  expect(calls).toContain("blobs.get");

  // The clock stands still from here on, so nothing that the replica does by itself is among the calls.
  const before = [...calls];
  const minRevision = "";
  const query = { filter: everything(""), pageSize: 0, pageToken: "", minRevision, ifRevision: "" };
  const page = await registry.stubs(query);
  await registry.stubs({ ...query, filter: { ...everything(""), namePrefix: "re" } });
  const { server } = await registry.server({ namespace: "", serverId: "files", minRevision });
  await registry.servers({ namespace: "", pageSize: 0, pageToken: "", minRevision });
  const again = await registry.schema(schema);
  await registry.schema({ ...schema, view: "input-only" });
  const watcher = await watch(registry);
  expect(calls).toEqual(before);

  expect(page.frames.length).toBeGreaterThan(0);
  expect(server.tools).toHaveLength(2);
  expect(again.schema.definition).toEqual(first.schema.definition);
  expect(watcher.stubs).toHaveLength(2);
});
