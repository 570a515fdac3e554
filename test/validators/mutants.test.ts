/** The validators stay silent about a whole registry, and each catches the breach of its promise. */
import { describe, expect, it } from "vitest";
import { fromJsonLines, toJsonLines } from "./history.js";
import { play, SCRIPTS, type ScriptName } from "./scripts.js";
import { READING } from "./mutants/reading.js";
import { WATCHING } from "./mutants/watching.js";
import { WRITING } from "./mutants/writing.js";
import { PROMISES, verdict, violations } from "./validators.js";

const MUTANTS = [...WATCHING, ...WRITING, ...READING];

describe("a whole registry", () => {
  it.each(Object.keys(SCRIPTS) as ScriptName[])("keeps every promise in the story '%s', and so says its history as JSON lines", async (name) => {
    const history = await play(name);
    expect(verdict(history)).toEqual([]);
    expect(verdict(fromJsonLines(toJsonLines(history)))).toEqual([]);
    expect(history.items.length).toBeGreaterThan(5);
  });
});

describe("a registry with one broken part", () => {
  it.each(MUTANTS.map((m) => ({ ...m, title: `${m.promise}: ${m.name}` })))("$title", async ({ promise, script, parts, also = [] }) => {
    const found = violations(await play(script, parts));
    const names = [...new Set(found.map((v) => v.promise))];
    expect(names, found.map((v) => v.text).join("\n")).toContain(promise);
    expect([promise, ...also], found.map((v) => v.text).join("\n")).toEqual(expect.arrayContaining(names));
    expect(found.find((v) => v.promise === promise)?.text).toMatch(new RegExp(`^${promise} [a-z ]+: .{20,}`));
  });

  it("is there for every promise", () => {
    const caught = new Set<string>([...MUTANTS.map((m) => m.promise), "breaker"]);
    expect(PROMISES.filter((p) => !caught.has(p))).toEqual([]);
  });
});
