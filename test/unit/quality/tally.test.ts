import { describe, expect, it } from "vitest";
import { QualityTally } from "../../../src/catalogue/quality/tally.js";
import { EMPTY_STUB, type StubFields } from "../../../src/domain/stub.js";

const stub = (serverId: string, name: string, briefDescription: string, digest = ""): StubFields => ({ ...EMPTY_STUB, serverId, name, briefDescription, digest });
const put = (tally: QualityTally, s: StubFields, definition?: object) =>
  tally.put(`${s.serverId}/${s.name}`, s, definition && Buffer.from(JSON.stringify(definition)));
const UNDESCRIBED = { name: "a", inputSchema: { type: "object", properties: { x: {} }, required: ["x"] } };
const countsOf = (tally: QualityTally) => Object.fromEntries([...tally.counts].filter(([, count]) => count !== 0));

describe("the tally of a namespace", () => {
  it("counts tools as they come, change and go", () => {
    const tally = new QualityTally();
    put(tally, stub("s", "a", ""));
    put(tally, stub("s", "b", "Word"));
    expect(countsOf(tally)).toEqual({ "no-purpose": 1, "one-word": 1 });
    put(tally, stub("s", "a", "Says what it is for at last"));
    expect(countsOf(tally)).toEqual({ "one-word": 1 });
    tally.remove("s/b");
    tally.remove("s/nobody");
    expect(countsOf(tally)).toEqual({});
    expect(tally.size).toBe(1);
  });

  it("keeps what is known of a definition while the digest stays", () => {
    const tally = new QualityTally();
    put(tally, stub("s", "a", "Says what it is for", "d1"), UNDESCRIBED);
    put(tally, stub("s", "a", "Says it in other words", "d1"));
    expect(countsOf(tally)).toEqual({ "undescribed-parameters": 1 });
    put(tally, stub("s", "a", "Says it in other words", "d2"));
    expect(countsOf(tally)).toEqual({});
    expect(tally.worst(() => true, 10)).toMatchObject({ unknown: 1, warned: 0, all: 1 });
  });

  it("knows who says the same under another name, and lets one tool be offered by many servers", () => {
    const tally = new QualityTally();
    put(tally, stub("one", "read", "Reads a file from the disk"));
    put(tally, stub("two", "read", "Reads a file from the disk"));
    expect(countsOf(tally)).toEqual({});
    put(tally, stub("two", "load", "Reads a file from the disk."));
    expect(countsOf(tally)).toEqual({ "duplicate-text": 3 });
    const { tools } = tally.worst((id) => id === "one", 10);
    expect(tools[0]?.warnings[0]?.message).toContain("two/load and 1 more");
    tally.remove("two/load");
    expect(countsOf(tally)).toEqual({});
  });

  it("answers the gravest first, the same in every order of arrival", () => {
    const all = [stub("s", "a", ""), stub("s", "b", "Word"), stub("s", "c", "A fine description of a thing"), stub("t", "d", "")];
    const orders = [all, [...all].reverse(), [all[2], all[0], all[3], all[1]] as StubFields[]];
    const answers = orders.map((order) => {
      const tally = new QualityTally();
      for (const one of order) put(tally, one);
      const { tools, counts, ...rest } = tally.worst(() => true, 2);
      return { tools, counts: [...counts].sort(), ...rest };
    });
    expect(answers[0]?.tools.map(({ toolId }) => toolId)).toEqual(["s/a", "t/d"]);
    expect(answers[0]).toMatchObject({ all: 4, warned: 3, unknown: 4 });
    expect(answers[1]).toEqual(answers[0]);
    expect(answers[2]).toEqual(answers[0]);
  });
});
