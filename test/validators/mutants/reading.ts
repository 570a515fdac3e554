/** Reads and loads that break P8 to P12. */
import { storeUnavailable } from "../../../src/domain/fault.js";
import type { Mutant } from "./mutant.js";

export const READING: readonly Mutant[] = [
  {
    promise: "P8",
    name: "lists that do not say that they are stale",
    script: "outage",
    parts: { broken: { api: (real) => ({ stubs: async (q) => ({ ...(await real.stubs(q)), stale: false }) }) } },
  },
  {
    promise: "P8",
    name: "servers that do not say that they are stale",
    script: "outage",
    parts: { broken: { api: (real) => ({ servers: async (q) => ({ ...(await real.servers(q)), stale: false }) }) } },
  },
  {
    promise: "P8",
    name: "reads that need the store",
    script: "outage",
    parts: {
      broken: {
        api: (real) => ({
          async stubs(q) {
            const page = await real.stubs(q);
            if (page.stale) throw storeUnavailable(undefined);
            return page;
          },
        }),
      },
    },
  },
  {
    promise: "P8",
    name: "definitions that are called CACHED while the store is away",
    script: "outage",
    parts: {
      broken: {
        api: (real) => ({
          async schema(q) {
            const answer = await real.schema(q);
            return { ...answer, schema: { ...answer.schema, freshness: "cached" } };
          },
        }),
      },
    },
  },
  {
    promise: "P9",
    name: "a bad tool that hides a good one",
    script: "neighbours",
    parts: {
      everywhere: {
        api: (real) => ({
          async stubs(q) {
            const page = await real.stubs({ ...q, filter: { ...q.filter, namePrefix: q.filter.namespace === "tenant" ? "" : "good" } });
            return page;
          },
        }),
      },
    },
  },
  {
    promise: "P9",
    name: "a list that shows another tenant's tools",
    script: "neighbours",
    parts: { everywhere: { api: (real) => ({ stubs: (q) => real.stubs({ ...q, filter: { ...q.filter, namespace: "tenant" } }) }) } },
    // Its own are then missing.
    also: ["P6"],
  },
  {
    promise: "P9",
    name: "servers of another tenant",
    script: "neighbours",
    parts: { broken: { api: (real) => ({ servers: (q) => real.servers({ ...q, namespace: "tenant" }) }) } },
  },
  {
    promise: "P10",
    name: "a loader that writes the JSON anew",
    script: "spelling",
    parts: {
      broken: {
        api: (real) => ({
          async schema(q) {
            const answer = await real.schema(q);
            const definition = Buffer.from(JSON.stringify(JSON.parse(Buffer.from(answer.schema.definition).toString())));
            return { ...answer, schema: { ...answer.schema, definition } };
          },
        }),
      },
    },
  },
  {
    promise: "P10",
    name: "loaders that all drop spaces",
    script: "spelling",
    parts: {
      everywhere: {
        api: (real) => ({
          async schema(q) {
            const answer = await real.schema(q);
            const definition = Buffer.from(Buffer.from(answer.schema.definition).toString().replaceAll(" ", ""));
            return { ...answer, schema: { ...answer.schema, definition } };
          },
        }),
      },
    },
  },
  {
    promise: "P11",
    name: "a list that looks whether its servers still say the same",
    script: "home",
    parts: {
      broken: {
        api: (real, site) => ({
          async stubs(q) {
            void site.upstream.list("http://127.0.0.1:9/mcp", new AbortController().signal);
            return real.stubs(q);
          },
        }),
      },
    },
  },
  {
    promise: "P11",
    name: "a watch that has its servers listed",
    script: "home",
    parts: {
      broken: {
        api: (real) => ({
          async watch(input, sink) {
            void real.refresh({ namespace: "", serverId: "live" });
            return real.watch(input, sink);
          },
        }),
      },
    },
  },
  {
    promise: "P12",
    name: "a replica that lists in another order",
    script: "day",
    parts: { broken: { api: (real) => ({ stubs: async (q) => backwards(await real.stubs(q)) }) } },
  },
  {
    promise: "P12",
    name: "a replica whose snapshots differ from its lists",
    script: "home",
    parts: {
      everywhere: {
        api: (real) => ({ stubs: (q) => real.stubs({ ...q, filter: { ...q.filter, namePrefix: "t" } }) }),
      },
    },
    // A watch then holds more than is read.
    also: ["P2"],
  },
];

function backwards<T extends { readonly frames: readonly Uint8Array[] }>(page: T): T {
  return { ...page, frames: [...page.frames].reverse() };
}
