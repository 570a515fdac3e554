import { describe, expect, it } from "vitest";
import type { Turn } from "../../../../src/client/injector/turn.js";
import { RegistryError } from "../../../../src/client/registry-error.js";
import { Availability } from "../../../../src/gen/toolcrib/v1/stub_pb.js";
import { PlayedAgent } from "../../../support/injector-bench.js";
import { definition } from "../../../support/loader-bench.js";

const AWAY = new RegistryError("the registry cannot be reached", { code: "UNAVAILABLE" });

function agentWith(...toolIds: string[]): PlayedAgent {
  const agent = new PlayedAgent();
  for (const id of toolIds) agent.put(id);
  return agent;
}

/** `tools | +add | -remove why`. */
function brief({ tools, add, remove }: Turn): string {
  const names = tools.map((t) => `${t.key}${t.form === "compact" ? "~" : ""}`);
  return [names.join(" "), `+${add.map((t) => t.key).join(" ")}`, `-${remove.map((r) => `${r.tool.key} ${r.why}`).join(", ")}`].join(" | ");
}

/** One turn after the other; each is given what is found. */
async function played(agent: PlayedAgent, injector: ReturnType<PlayedAgent["injector"]>, turns: readonly (readonly string[])[]): Promise<string[]> {
  const told: string[] = [];
  for (const [i, hits] of turns.entries()) {
    agent.hits = hits;
    told.push(brief(await injector.turn(`intent ${i}`)));
  }
  return told;
}

describe("a prompt's tools", () => {
  it("are those that the turn needs; what is not chosen again leaves at once", async () => {
    const agent = agentWith("a/x", "a/y", "b/z");
    expect(await played(agent, agent.injector(), [["a/x", "a/y"], ["a/y", "b/z"], ["b/z"], []])).toEqual([
      "a/x a/y | +a/x a/y | -",
      "a/y b/z | +b/z | -a/x not-chosen",
      "b/z | + | -a/y not-chosen",
      " | + | -b/z not-chosen",
    ]);
  });

  it("or after some turns, in an order that does not change while they stay", async () => {
    const agent = agentWith("a/x", "a/y", "b/z");
    expect(await played(agent, agent.injector({ keepTurns: 2 }), [["a/x"], ["a/y"], ["b/z", "a/x"], ["b/z"], ["b/z"], ["b/z"]])).toEqual([
      "a/x | +a/x | -",
      "a/x a/y | +a/y | -",
      "a/x a/y b/z | +b/z | -",
      "a/x a/y b/z | + | -",
      "a/x b/z | + | -a/y not-chosen",
      "b/z | + | -a/x not-chosen",
    ]);
  });

  it("pinned ones stay in compact form, and are whole while they are chosen", async () => {
    const agent = agentWith("a/x", "p/in");
    agent.put("p/in", {}, definition("in", "First sentence. And much more that nobody needs to choose it."));
    const injector = agent.injector({ pinned: ["p/in"] });
    expect(await played(agent, injector, [["a/x"], ["p/in"], ["a/x"]])).toEqual([
      "p/in~ a/x | +p/in a/x | -",
      "p/in | +p/in | -p/in changed, a/x not-chosen",
      "p/in~ a/x | +p/in a/x | -p/in changed",
    ]);
    expect(injector.tools[0]?.definition).toMatchObject({ name: "in", description: "First sentence." });
    expect(injector.tools[0]?.tokens).toBeLessThan(Math.ceil(definition("in").bytes.byteLength));
  });

  it("give definitions that are frozen, and the bytes they were made of", async () => {
    const agent = agentWith("a/x");
    agent.hits = ["a/x"];
    const [tool] = (await agent.injector().turn("x")).tools;
    expect(tool?.text).toBe(Buffer.from(definition("x").bytes).toString());
    expect(tool?.definition).toEqual(JSON.parse(tool?.text ?? ""));
    expect(() => Object.assign((tool?.definition["inputSchema"] as object) ?? {}, { type: "string" })).toThrow(TypeError);
  });

  it("that changed are given anew, that are gone leave, whether chosen again or kept", async () => {
    const agent = agentWith("a/x", "a/y");
    const injector = agent.injector({ keepTurns: 9 });
    await played(agent, injector, [["a/x", "a/y"]]);
    agent.put("a/x", {}, definition("x", "Does something else"));
    agent.remove("a/y");
    expect(await played(agent, injector, [[]])).toEqual(["a/x | +a/x | -a/x changed, a/y gone"]);
    expect(injector.tools[0]?.definition["description"]).toBe("Does something else");
  });

  it("whose server is away leave, unless the gate chose them this turn", async () => {
    const agent = agentWith("a/x", "p/in");
    const injector = agent.injector({ keepTurns: 9, pinned: ["p/in"] });
    await played(agent, injector, [["a/x"]]);
    for (const id of ["a/x", "p/in"]) agent.put(id, { availability: Availability.UNAVAILABLE });
    expect(await played(agent, injector, [[]])).toEqual([" | + | -p/in unavailable, a/x unavailable"]);
  });

  it("that are late are left out and named; what stands in for them is there, and stays like what was chosen", async () => {
    const agent = agentWith("a/x", "a/late", "b/spare", "b/spare2");
    agent.late.set("a/late", "b/spare");
    agent.hits = ["a/x", "a/late"];
    const injector = agent.injector({ keepTurns: 1 });
    const turn = await injector.turn("x");
    expect(brief(turn)).toBe("a/x b/spare | +a/x b/spare | -");
    expect(turn.missing).toMatchObject([{ toolId: "a/late", why: "late", instead: { toolId: "b/spare" } }]);
    agent.late.clear();
    expect(await played(agent, injector, [["a/x", "a/late"], ["a/x"]])).toEqual([
      "a/x b/spare a/late | +a/late | -",
      "a/x a/late | + | -b/spare not-chosen",
    ]);
  });

  it("what stands in for a kept tool is not taken: nobody chose it for this turn", async () => {
    const agent = agentWith("a/x", "a/y", "b/spare");
    const injector = agent.injector({ keepTurns: 5 });
    await played(agent, injector, [["a/x", "a/y"]]);
    agent.late.set("a/y", "b/spare");
    expect(await played(agent, injector, [["a/x"]])).toEqual(["a/x | + | -a/y late"]);
  });
});

describe("a turn's choice", () => {
  it("asks for some more as next best, and takes what was asked for, what is named and what belongs to an answer", async () => {
    const agent = agentWith("a/1", "a/2", "a/3", "a/4", "a/5", "a/6");
    agent.hits = ["a/1", "a/2", "a/3", "a/4 SIBLING a/1", "a/5 EXACT_NAME", "a/6 COMPANION a/3"];
    const turn = await agent.injector({ topK: 2 }).turn("x");
    expect(turn.tools.map((t) => t.key)).toEqual(["a/1", "a/2", "a/4", "a/5"]);
    expect(agent.finds[0]?.options.topK).toBe(5);
    expect(agent.loads[0]?.options.next).toEqual(["a/3", "a/6"]);
  });

  it("stays within a budget of tokens: the best that fit, and the others are named", async () => {
    const agent = agentWith("a/1", "a/2", "b/pin");
    agent.put("a/large", {}, definition("large", "x".repeat(4_000)));
    agent.hits = ["a/1", "a/large", "a/2"];
    const injector = agent.injector({ topK: 3, pinned: ["b/pin"] });
    const all = await injector.turn("x");
    expect(all.tools.map((t) => t.key).sort()).toEqual(["a/1", "a/2", "a/large", "b/pin"]);
    expect(all.overBudget).toEqual([]);
    const turn = await injector.turn("x", { tokenBudget: 300 });
    expect(brief(turn)).toBe("b/pin~ a/1 a/2 | + | -a/large over-budget");
    expect(turn.overBudget).toEqual([{ toolId: "a/large", tokens: expect.any(Number) }]);
    expect(turn.overBudget[0]?.tokens).toBeGreaterThan(1_000);
    expect(turn.tokens.sent).toBeLessThanOrEqual(300);
    // The gate is not told: it would spend the budget on labels.
    expect(agent.finds[1]?.options.tokenBudget).toBeUndefined();
    // Nothing is spent on what is not pinned where there is nothing left, and everything comes back with the budget.
    expect((await injector.turn("x", { tokenBudget: 1 })).tools.map((t) => t.key)).toEqual(["b/pin"]);
    expect((await injector.turn("x")).tools).toHaveLength(4);
  });

  it("can be found before", async () => {
    const agent = agentWith("a/1", "a/2");
    agent.hits = ["a/1", "a/2"];
    const found = await agent.find("x");
    expect((await agent.injector().turn(found)).tools.map((t) => t.key)).toEqual(["a/1", "a/2"]);
    expect(agent.finds).toHaveLength(1);
  });

  it("keeps what was there while the registry is away, and says that it is stale", async () => {
    const agent = agentWith("a/x", "a/y");
    const injector = agent.injector();
    await played(agent, injector, [["a/x"]]);
    agent.findError = AWAY;
    agent.stale.add("a/x");
    const turn = await injector.turn("something else");
    expect(brief(turn)).toBe("a/x | + | -");
    expect(turn.search).toEqual({ kind: "away", error: AWAY });
    expect(turn.stale).toEqual(["a/x"]);
    agent.findError = undefined;
    agent.stale.clear();
    expect(await played(agent, injector, [["a/y"]])).toEqual(["a/y | +a/y | -a/x not-chosen"]);
  });

  it("that the registry refuses changes nothing", async () => {
    const agent = agentWith("a/x");
    const injector = agent.injector();
    await played(agent, injector, [["a/x"]]);
    agent.findError = new RegistryError("top_k: is 0", { code: "INVALID_ARGUMENT", reason: "INVALID_REQUEST" });
    await expect(injector.turn("x")).rejects.toBe(agent.findError);
    expect(injector.tools.map((t) => t.key)).toEqual(["a/x"]);
    expect(injector.totals.turns).toBe(1);
    agent.findError = undefined;
    expect(await played(agent, injector, [["a/x"]])).toEqual(["a/x | + | -"]);
  });

  it("turns asked for at once come one after the other", async () => {
    const agent = agentWith("a/x");
    agent.hits = ["a/x"];
    const injector = agent.injector();
    const turns = await Promise.all([injector.turn("1"), injector.turn("2"), injector.turn("3")]);
    expect(turns.map((t) => [t.number, t.add.length])).toEqual([[1, 1], [2, 0], [3, 0]]);
  });

  it("options that cannot be used are refused by name", () => {
    const agent = agentWith();
    expect(() => agent.injector({ keepTurns: -1 })).toThrow("keepTurns is -1");
    expect(() => agent.injector({ topK: 51 })).toThrow("topK is 51: give 1 to 50");
  });
});

describe("append mode", () => {
  it("changes nothing of what stands there, whatever comes, goes, changes or comes back", async () => {
    const agent = agentWith("a/x", "a/y", "b/z", "p/in");
    const injector = agent.injector({ mode: "append", pinned: ["p/in"] });
    const texts: string[][] = [];
    const steps: string[] = [];
    const run = async (hits: readonly string[]): Promise<void> => {
      agent.hits = hits;
      const turn = await injector.turn("x");
      steps.push(`${brief(turn)} | ${turn.breakpoint}`);
      const now = turn.inputs.map((input) => JSON.stringify(input));
      const before = texts.at(-1) ?? [];
      expect(now.slice(0, before.length)).toEqual(before);
      expect(turn.breakpoint).toBe(before.length);
      expect(new Set(turn.inputs.map((i) => i.toolId)).size).toBe(turn.inputs.length);
      texts.push(now);
    };
    await run(["a/x"]);
    await run(["a/y"]);
    await run(["a/x", "b/z"]);
    agent.put("a/x", {}, definition("x", "Does something else"));
    await run(["a/x"]);
    await run(["p/in"]);
    await run(["b/z"]);
    expect(steps).toEqual([
      "p/in~ a/x | +p/in a/x | - | 0",
      "p/in~ a/x a/y | +a/y | -a/x not-chosen | 2",
      "p/in~ a/x a/y b/z | +a/x b/z | -a/y not-chosen | 3",
      "p/in~ a/x a/y b/z a/x@2 | +a/x@2 | -a/x changed, b/z not-chosen | 4",
      "p/in~ a/x a/y b/z a/x@2 p/in@2 | +p/in@2 | -p/in changed, a/x@2 not-chosen | 5",
      "p/in~ a/x a/y b/z a/x@2 p/in@2 | +p/in b/z | -p/in@2 changed | 6",
    ]);
  });

  it("what left is there and refused; its later version is called by its key", async () => {
    const agent = agentWith("a/x", "a/y");
    const injector = agent.injector({ mode: "append" });
    await played(agent, injector, [["a/x"]]);
    agent.put("a/x", {}, definition("x", "Does something else"));
    await played(agent, injector, [["a/x"]]);
    const refused = await injector.call("a/x");
    expect(refused).toMatchObject({ kind: "refused", nearest: [{ key: "a/x@2" }] });
    await injector.call("a/x@2", { a: "1" });
    expect(agent.calls).toEqual([{ toolId: "a/x", args: { a: "1" } }]);
  });

  it("a rebase makes it short again, and tells where the old one ends", async () => {
    const agent = agentWith("a/x", "a/y", "b/z");
    const injector = agent.injector({ mode: "append", keepTurns: 1 });
    await played(agent, injector, [["a/x"], ["a/y"], ["b/z"]]);
    injector.rebase();
    expect(injector.tools.map((t) => t.key)).toEqual(["a/y", "b/z"]);
    agent.hits = ["b/z"];
    const turn = await injector.turn("x");
    expect([brief(turn), turn.breakpoint]).toEqual(["a/y b/z | + | -a/y not-chosen", 0]);
  });
});

describe("a call", () => {
  it("of what is not loaded is refused, with the nearest that is", async () => {
    const agent = agentWith("memory/create_entities", "memory/create_relations", "memory/read_graph", "git/git_log");
    agent.hits = ["git/git_log", "memory/read_graph", "memory/create_entities"];
    const injector = agent.injector();
    await injector.turn("x");
    const refused = await injector.call("memory/entities_create", {});
    expect(refused).toMatchObject({ kind: "refused", success: false, registered: false });
    if (refused.kind !== "refused") throw new Error("it was called");
    expect(refused.nearest.map((t) => t.key)[0]).toBe("memory/create_entities");
    expect(refused.message).toBe(
      'There is no loaded tool "memory/entities_create", so nothing was called. Loaded now, the most alike first: ' +
        `${refused.nearest.map((t) => t.key).join(", ")}.`,
    );
    expect(agent.calls).toEqual([]);
    expect(await injector.report(refused)).toEqual({ remembered: false });
    expect(agent.reports).toEqual([]);
  });

  it("of a tool that exists is looked for by name in the next turn, which the gate decides", async () => {
    const agent = agentWith("a/x", "a/y");
    agent.hits = ["a/x"];
    const injector = agent.injector();
    await injector.turn("x");
    expect(await injector.call("a/y")).toMatchObject({ registered: true, message: expect.stringContaining("looked for in the next turn") });
    await injector.turn("go on");
    expect(agent.finds.at(-1)).toMatchObject({ intent: "go on", options: { namedTools: ["a/y"] } });
    await injector.turn("and on", { namedTools: ["a/x"] });
    expect(agent.finds.at(-1)).toMatchObject({ intent: "and on", options: { namedTools: ["a/x"] } });
  });

  it("with nothing loaded says so", async () => {
    expect(agentWith().injector().admit("a/x")).toMatchObject({ kind: "refused", message: expect.stringContaining("No tool is loaded now.") });
  });

  it("is told to the gate in later turns, and reported with what it was found for and what went before", async () => {
    const agent = agentWith("a/x", "a/y", "a/z");
    const injector = agent.injector({ keepTurns: 5 });
    await played(agent, injector, [["a/x", "a/y", "a/z"]]);
    await injector.call("a/x");
    injector.called("a/y", false);
    injector.called("a/z", true);
    const outcome = await injector.call("a/y", { a: "1" });
    await injector.report(outcome);
    await injector.report(outcome, { wrongTool: true });
    expect(agent.reports[0]).toMatchObject({ outcome: { toolId: "a/y" }, options: { wrongTool: false, precedingTools: ["a/z", "a/x"], found: { intent: "intent 0" } } });
    expect(agent.reports[1]).toMatchObject({ options: { wrongTool: true } });
    await injector.turn("more");
    expect(agent.finds.at(-1)?.options.recentTools).toEqual([
      { toolId: "a/x", success: true, turnsAgo: 1 },
      { toolId: "a/y", success: false, turnsAgo: 1 },
      { toolId: "a/z", success: true, turnsAgo: 1 },
      { toolId: "a/y", success: true, turnsAgo: 1 },
    ]);
  });
});
