import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { describe, expect, it } from "vitest";
import { BYTES_OVER_4, gptTokenizer } from "../../../../src/client/injector/tokens.js";
import { PlayedAgent } from "../../../support/injector-bench.js";
import { definition } from "../../../support/loader-bench.js";

function agentWith(...toolIds: string[]): PlayedAgent {
  const agent = new PlayedAgent();
  for (const id of toolIds) agent.put(id);
  return agent;
}

const textOf = (name: string): string => Buffer.from(definition(name).bytes).toString();

describe("tokens", () => {
  it("are counted by gpt-tokenizer, special tokens in descriptions as text, or estimated; the name says which", async () => {
    const o200k = await gptTokenizer();
    expect(o200k.name).toBe("o200k_base");
    expect(o200k.count(textOf("x"))).toBe(countTokens(textOf("x")));
    expect(o200k.count("<|endoftext|>")).toBeGreaterThan(1);
    expect((await gptTokenizer("cl100k_base")).name).toBe("cl100k_base");
    expect([BYTES_OVER_4.name, BYTES_OVER_4.count("äöü!!"), BYTES_OVER_4.count("")]).toEqual(["bytes/4", 2, 0]);
  });

  it("of a turn: the whole catalogue, what was sent, and what that saves; with how many tools are estimated", async () => {
    const agent = agentWith("a/x", "a/y", "a/z");
    agent.put("a/unseen", { estimatedTokens: 0, digest: "" });
    agent.hits = ["a/x"];
    const tokenizer = await gptTokenizer();
    const injector = agent.injector({ tokenizer });
    const [x, y, z] = ["x", "y", "z"].map((name) => tokenizer.count(textOf(name)));
    const estimate = Math.floor(definition("y").bytes.byteLength / 4);
    const first = await injector.turn("1");
    const baseline = (x ?? 0) + 2 * estimate;
    expect(first.tokens).toEqual({
      counter: "o200k_base",
      baseline: { tokens: baseline, counted: 1, estimated: 2, unknown: 1 },
      sent: x,
      unchanged: 0,
      extra: false,
      overhead: 0,
      saved: baseline - (x ?? 0),
    });
    agent.remove("a/unseen");
    expect(await injector.countCatalogue()).toBe(0);
    const second = await injector.turn("2");
    const all = (x ?? 0) + (y ?? 0) + (z ?? 0);
    expect(second.tokens.baseline).toEqual({ tokens: all, counted: 3, estimated: 0, unknown: 0 });
    expect(second.tokens.unchanged).toBe(x);
    expect(injector.totals).toMatchObject({ turns: 2, extraTurns: 0, baseline: baseline + all, sent: 2 * (x ?? 0), saved: baseline + all - 2 * (x ?? 0) });
  });

  it("an extra turn is all cost: what it sends, the rest of the prompt, and what the refusal said", async () => {
    const agent = agentWith("a/x", "a/y");
    agent.hits = ["a/x"];
    const injector = agent.injector();
    const { tokens: first } = await injector.turn("1", { contextTokens: 500 });
    expect(first).toMatchObject({ extra: false, overhead: 0 });
    const refused = injector.admit("a/y");
    if (refused.kind !== "refused") throw new Error("it was admitted");
    const { tokens: extra } = await injector.turn("1", { contextTokens: 500 });
    const overhead = 500 + BYTES_OVER_4.count(refused.message);
    expect(extra).toMatchObject({ extra: true, overhead, saved: -extra.sent - overhead });
    const { tokens: search } = await injector.turn("the model asked for tools", { extra: true });
    expect(search).toMatchObject({ extra: true, overhead: 0, saved: -search.sent });
    expect(injector.totals).toMatchObject({ turns: 3, extraTurns: 2, baseline: first.baseline.tokens, sent: 3 * first.sent + overhead });
    expect(injector.totals.saved).toBe(injector.totals.baseline - injector.totals.sent);
  });

  it("append mode pays for what left and is still there", async () => {
    const agent = agentWith("a/x", "a/y");
    const injector = agent.injector({ mode: "append" });
    agent.hits = ["a/x"];
    const first = await injector.turn("1");
    agent.hits = ["a/y"];
    const second = await injector.turn("2");
    expect(second.tokens.unchanged).toBe(first.tokens.sent);
    expect(second.tokens.sent).toBe(first.tokens.sent + BYTES_OVER_4.count(textOf("y")));
  });

  it("an agent that follows nothing takes the registry's estimate as baseline", async () => {
    const agent = agentWith("a/x");
    agent.labels.clear();
    agent.hits = ["a/x"];
    expect((await agent.injector().turn("1")).tokens.baseline).toEqual({ tokens: 7_000, counted: 0, estimated: 70, unknown: 0 });
  });
});
