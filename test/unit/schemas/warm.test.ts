import { describe, expect, it } from "vitest";
import type { FullSchema, SchemaLoader } from "../../../src/catalogue/api.js";
import { notFound } from "../../../src/domain/fault.js";
import { warm } from "../../../src/schemas/warm.js";
import { FakeClock } from "../../support/fake-clock.js";

function bench(there: Set<string>) {
  const clock = new FakeClock();
  const asked: string[] = [];
  const told: string[] = [];
  const loader: Pick<SchemaLoader, "full"> = {
    async full({ namespace, key }) {
      const id = key.kind === "tool" ? `${namespace}:${key.toolId}` : "";
      asked.push(id);
      if (!there.has(id)) throw notFound("tool", id);
      return {} as FullSchema;
    },
  };
  const say = (fields: object, message: string): void => void told.push(`${message} ${JSON.stringify(fields)}`);
  const logger = { debug: say, info: say, warn: say, error: say };
  return { clock, asked, told, deps: { loader, clock, logger } };
}

const wanted = (...ids: string[]) => ids.map((toolId) => ({ namespace: "default", toolId }));

describe("the warm list", () => {
  it("is loaded, and those that come up later with the next rounds, each once", async () => {
    const there = new Set(["default:a/one"]);
    const b = bench(there);
    const done = warm(b.deps, wanted("a/one", "b/two"), new AbortController().signal);
    await b.clock.advance(500);
    there.add("default:b/two");
    await b.clock.advance(10_000);
    await done;
    expect(b.asked).toEqual(["default:a/one", "default:b/two", "default:b/two"]);
    expect(b.told).toEqual(['the warm list is loaded {"loaded":2}']);
  });

  it("is given up after a while, naming what is missing, and ends with the registry", async () => {
    const b = bench(new Set());
    const done = warm(b.deps, wanted("a/gone"), new AbortController().signal);
    await b.clock.advance(3_600_000);
    await done;
    expect(b.told.join()).toContain("default:a/gone");
    const stop = new AbortController();
    const other = bench(new Set());
    const stopped = warm(other.deps, wanted("a/gone"), stop.signal);
    await other.clock.advance(100);
    stop.abort();
    await stopped;
    expect(other.told).toEqual([]);
  });
});
