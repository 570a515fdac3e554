/** `npm run demo` as it runs anywhere: its stories on a real registry, a real gateway and real servers, from what is in the repository. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import { splitToolId } from "../../src/domain/ids.js";
import type { Row } from "../demo/benchmark.js";
import { type Intent, type Listings, readIntents, readListings, SIX } from "../demo/listings.js";
import { STORIES, tell } from "../demo/main.js";
import type { Outcome } from "../demo/report.js";

const ROOT = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");
const listings: Listings = readListings(ROOT, join(ROOT, "test/no-such-corpus"));

describe("the demo", () => {
  const lines: string[] = [];
  const told = new Map<string, Outcome>();
  beforeAll(async () => {
    const options = { root: ROOT, listings, retrieval: join(ROOT, "test/no-such-corpus"), rounds: 1, say: (line: string) => void lines.push(line) };
    for (const outcome of await tell(Object.keys(STORIES), options)) told.set(outcome.story, outcome);
  }, 240_000);
  const facts = (story: string): any => told.get(story)?.facts;

  it("says why it is reduced", () => {
    expect(listings.reduced).toMatch(/no-such-corpus.* is not there.*9 listings/);
  });

  it("marathon: results, then training, in one session", () => {
    const { lists, calls, listChanged } = facts("marathon");
    expect(lists[0]).toEqual(["find_tools"]);
    expect(lists[1]).toContain("results__personal_best");
    expect(lists[1].filter((name: string) => name.startsWith("training__"))).toEqual([]);
    expect(lists[2]).toEqual(expect.arrayContaining(["training__pace_for_goal", "training__plan_week"]));
    expect(lists[2].filter((name: string) => name.startsWith("results__"))).toEqual([]);
    // A notice may come on the stream of the call and on that of the session.
    expect(listChanged).toBeGreaterThanOrEqual(2);
    expect(calls.slice(0, 3)).toEqual([
      "answered: 03:25:15 at Hamburg Marathon 2026",
      "answered: 04:37 min per km",
      expect.stringMatching(/^answered: Tuesday: 12\.0 km/),
    ]);
    expect(calls[3]).toMatch(/^refused: .*not loaded now/);
  });

  it("erp: every step in Chinese goes through, and the list never changes", () => {
    expect(told.get("erp")?.aims.filter(({ met }) => !met)).toEqual([]);
    const { answers, sent, withAll } = facts("erp");
    expect(answers).toHaveLength(3);
    for (const answer of answers) expect(answer).toMatch(/was called with \{"data":/);
    expect(sent).toBeLessThan(withAll / 2);
  });

  it("tokens: the gate's tools reach the agent, at a small part of the cost", () => {
    const { tools, servers, rows, recallAt5 } = facts("tokens");
    expect({ tools, servers }).toEqual({ tools: 120, servers: 6 });
    const of = (way: string): Row => rows.find((row: Row) => row.way === way);
    const all = of("all tools");
    for (const way of ["gateway, map + gate (5)", "gateway, stable (5)", "library, map + gate (5)"]) {
      expect(of(way).turn, way).toBeLessThan(all.turn / 10);
      expect(of(way).reached, way).toBeGreaterThanOrEqual(recallAt5);
    }
    // What the gate misses is not for nothing.
    expect(of("gateway, map + gate (5)").paidRequests).toBeGreaterThan(of("gateway, map + gate (5)").requests);
    expect(of("gateway, map + gate (5)").paid).toBeLessThan(all.paid);
    expect(of("map, right category").reached).toBe(1);
    expect(of("gateway, map + gate (5)").byKind["plain"]).toBeGreaterThan(0.9);
  });

  it("corpus: what the gate finds is injected", () => {
    const { rows, recallAt5 } = facts("corpus");
    for (const row of rows as Row[]) if (row.way.includes("(5)")) expect(row.reached, row.way).toBeGreaterThanOrEqual(recallAt5);
  });

  it("cold start: every way sees what it should", () => {
    const { tools, seen, times } = facts("cold-start");
    expect(Object.keys(times)).toHaveLength(7);
    const { "lazy, over the gateway": loaded, ...whole } = seen;
    expect(new Set(Object.values(whole))).toEqual(new Set([tools]));
    expect(loaded).toBeGreaterThan(1);
  });

  it("prints every aim as met or MISSED", () => {
    const aims = [...told.values()].flatMap((outcome) => outcome.aims);
    for (const { what, met } of aims) expect(lines.some((line) => line.includes(what) && line.includes(met ? "met" : "MISSED")), what).toBe(true);
  });
});

describe("the demo's intents", () => {
  const all = JSON.parse(readFileSync(join(ROOT, "test/fixtures/demo/intents.json"), "utf8")) as Intent[];

  it("paraphrase without a word of the tool's name", () => {
    for (const { kind, text, tools } of all) {
      if (kind !== "paraphrase") continue;
      const words = new Set(wordsOf(text));
      for (const id of tools) {
        const service = new Set(wordsOf(id.split("/")[0] ?? ""));
        expect(wordsOf(splitToolId(id)?.toolName ?? "").filter((word) => words.has(word) && !service.has(word)), `${text} → ${id}`).toEqual([]);
      }
    }
  });

  it("ask for tools that the listings have, half of the 120 tools' in other words", () => {
    const six = readIntents(ROOT, listings.all.filter(({ id }) => (SIX as readonly string[]).includes(id)));
    expect(six.length).toBeGreaterThanOrEqual(40);
    expect(six.filter(({ kind }) => kind === "paraphrase").length / six.length).toBeGreaterThanOrEqual(0.5);
  });
});

/** Short words, as `in` or `get`, tell nothing. */
function wordsOf(text: string): string[] {
  return (text.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase().match(/[a-z]+/g) ?? []).filter((word) => word.length > 2);
}
