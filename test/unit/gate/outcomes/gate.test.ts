/** What reports do to answers, through the gate itself. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { FindQuery, OutcomeReport } from "../../../../src/gate/api.js";
import type { LoadSchemas } from "../../../../src/gate/ports.js";
import { asking, type Shelf, shelf } from "../../../support/gate.js";
import { outcomesWorld, reporting, type World } from "../../../support/outcomes.js";

interface Office extends Shelf {
  readonly world: World;
  find(intent: string, more?: Partial<FindQuery>): Promise<string[]>;
  report(toolId: string, intent: string, more?: Partial<OutcomeReport>): Promise<boolean>;
}

function office(load?: LoadSchemas, perSecond?: number): Office {
  const world = outcomesWorld();
  const outcomes = world.replica(1, perSecond === undefined ? {} : { perSecond });
  const s = shelf(load, undefined, { outcomes, now: () => world.clock.now() });
  s.put("erp/create_order", { briefDescription: "Create a purchase order", sizeBytes: 300 });
  s.put("erp/approve_order", { briefDescription: "Approve a purchase order", sizeBytes: 300 });
  s.put("erp/archive_order", { briefDescription: "Archive a purchase order", sizeBytes: 300 });
  s.put("old/create_order", { briefDescription: "Create a purchase order by the old way", sizeBytes: 300 });
  s.put("mail/send_message", { briefDescription: "Send a message to a person", sizeBytes: 300 });
  return {
    ...s,
    world,
    find: async (intent, more) => (await s.gate.find(asking(intent, more), undefined)).tools.map(({ toolId }) => toolId),
    report: async (toolId, intent, more) => (await s.gate.report(reporting(toolId, intent, more))).remembered,
  };
}

const FAILS = { success: false, errorKind: "tool-error" } as const;

describe("a confirmed intent", () => {
  it("finds its tool by other words than its label has, and says so", async () => {
    const o = office();
    expect(await o.find("tell my colleague about it")).not.toContain("mail/send_message");
    expect(await o.report("mail/send_message", "tell my colleague about the party")).toBe(true);
    const { tools } = await o.gate.find(asking("tell my colleague about it"), undefined);
    expect(tools[0]).toMatchObject({ toolId: "mail/send_message", reasons: [{ kind: "remembered" }] });
    expect((await o.gate.find(asking("tell my colleague about the party"), undefined)).weak).toBe(false);
  });

  it("says nothing of one's own words, of a failed call, and of a tool that is not there", async () => {
    const o = office();
    expect(await o.report("mail/send_message", " ")).toBe(false);
    expect(await o.report("mail/send_message", "the of and")).toBe(false);
    expect(await o.report("mail/send_message", "tell my colleague", FAILS)).toBe(false);
    expect(await o.find("tell my colleague")).not.toContain("mail/send_message");
    await expect(o.report("mail/nothing", "tell my colleague")).rejects.toMatchObject({ reason: "NOT_FOUND" });
  });

  it("is withdrawn by its caller where it was the wrong tool, which says nothing of the tool itself", async () => {
    const o = office();
    await o.report("mail/send_message", "tell my colleague");
    for (let n = 0; n < 10; n++) await o.report("mail/send_message", "tell my colleague", { success: false, errorKind: "wrong-tool" });
    expect(await o.find("tell my colleague")).not.toContain("mail/send_message");
    expect((await o.find("send a message"))[0]).toBe("mail/send_message");
  });

  it("does not move tools that were never used, nor their scores", async () => {
    const [fresh, used] = [office(), office()];
    await used.report("mail/send_message", "tell my colleague about the party");
    const of = async (o: Office) => (await o.gate.find(asking("archive the purchase order"), undefined)).tools.map(({ toolId, score, margin }) => ({ toolId, score, margin }));
    expect(await of(used)).toEqual(await of(fresh));
  });

  it("a tool that went is not answered, and is remembered when it comes back", async () => {
    const o = office();
    await o.report("mail/send_message", "tell my colleague about the party");
    o.remove("mail/send_message");
    expect(await o.find("tell my colleague about the party")).not.toContain("mail/send_message");
    o.put("mail/send_message", { briefDescription: "Send a message to a person" });
    expect((await o.find("tell my colleague about the party"))[0]).toBe("mail/send_message");
  });
});

describe("a tool whose calls fail", () => {
  it("leaves the top within ten failures, is tried again, and is back when it works", async () => {
    const o = office();
    for (let n = 0; n < 30; n++) await o.report("erp/create_order", "");
    expect((await o.find("create a purchase order"))[0]).toBe("erp/create_order");
    for (let n = 0; n < 10; n++) await o.report("erp/create_order", "", FAILS);
    const after = await o.find("create a purchase order");
    expect(after[0]).toBe("old/create_order");
    expect(after).toContain("erp/create_order");
    o.world.clock.sleepThrough(6 * 60_000);
    expect((await o.find("create a purchase order"))[0]).toBe("erp/create_order");
    for (let n = 0; n < 3; n++) await o.report("erp/create_order", "", FAILS);
    expect((await o.find("create a purchase order"))[0]).toBe("old/create_order");
    for (let n = 0; n < 3; n++) await o.report("erp/create_order", "");
    expect((await o.find("create a purchase order"))[0]).toBe("erp/create_order");
  });

  it("is still answered by name", async () => {
    const o = office();
    for (let n = 0; n < 10; n++) await o.report("erp/create_order", "", FAILS);
    expect((await o.find("erp/create_order"))[0]).toBe("erp/create_order");
  });

  it.each(["cancelled", "invalid-arguments", "wrong-tool"] as const)("%s is no fault of it", async (errorKind) => {
    const o = office();
    const before = await o.gate.find(asking("create a purchase order"), undefined);
    for (let n = 0; n < 20; n++) await o.report("erp/create_order", "", { success: false, errorKind });
    expect(await o.gate.find(asking("create a purchase order"), undefined)).toEqual(before);
  });

  it("one caller alone does not take it from others for whom it works", async () => {
    const o = office();
    for (const caller of ["b", "c", "b", "c", "b"]) await o.report("erp/create_order", "", { caller });
    for (let n = 0; n < 200; n++) await o.report("erp/create_order", "", { ...FAILS, caller: "liar" });
    expect((await o.find("create a purchase order"))[0]).toBe("erp/create_order");
  });
});

describe("tools that often follow", () => {
  const used = async (o: Office, times: number) => {
    for (let n = 0; n < times; n++) {
      await o.report("erp/create_order", "");
      await o.report("mail/send_message", "", { preceding: ["erp/create_order"] });
    }
  };
  const loaded: LoadSchemas = async (_ns, ids) =>
    ids.map((toolId) => ({ kind: "schema", schema: { toolId, definition: Buffer.from("{}"), digest: "", freshness: "live", fetchedAtMs: 0 } }));

  it("stand beside the answer with their reason, and as a bundle in words", async () => {
    const o = office();
    expect((await o.gate.find(asking("create a purchase order", { topK: 1 }), undefined)).bundles).toEqual([]);
    await used(o, 4);
    const { tools, bundles } = await o.gate.find(asking("create a purchase order", { topK: 1 }), undefined);
    expect(tools.find(({ toolId }) => toolId === "mail/send_message")?.reasons).toEqual([{ kind: "companion", of: "erp/create_order" }]);
    expect(bundles).toEqual([
      { toolIds: ["erp/create_order", "mail/send_message"], description: "create the order, then send the message", share: 1 },
    ]);
    expect((await o.gate.find(asking("send a message", { topK: 1 }), undefined)).bundles).toEqual(bundles);
  });

  it("come with their definitions where those are asked for", async () => {
    const o = office(loaded);
    await used(o, 4);
    const { tools } = await o.gate.find(asking("send a message", { topK: 1, schemas: "full" }), undefined);
    expect(tools.map(({ toolId, schema }) => [toolId, schema?.loaded.kind])).toEqual([
      ["mail/send_message", "schema"],
      ["erp/create_order", "schema"],
    ]);
  });

  it("only if they may be offered", async () => {
    const o = office();
    await used(o, 4);
    o.put("mail/send_message", { briefDescription: "Send a message to a person" }, "unavailable");
    const { tools, bundles } = await o.gate.find(asking("create a purchase order", { topK: 1 }), undefined);
    expect([tools.map(({ toolId }) => toolId).includes("mail/send_message"), bundles]).toEqual([false, []]);
  });

  it("are at hand after the call that they follow, whatever is asked", async () => {
    const o = office();
    await used(o, 4);
    const recent = [{ toolId: "erp/create_order", success: true, turnsAgo: 1 }];
    expect(await o.find("archive", { topK: 1 })).toEqual(["erp/archive_order"]);
    expect(await o.find("archive", { topK: 1, recent })).toEqual(["erp/archive_order", "mail/send_message"]);
    expect(await o.find("archive", { topK: 1, recent: [{ ...recent[0], success: false }] as never })).toEqual(["erp/archive_order"]);
  });

  it("unknown tools before it break the sequence, and one that was tried twice came once", async () => {
    const o = office();
    for (let n = 0; n < 4; n++) {
      await o.report("erp/create_order", "");
      await o.report("mail/send_message", "", { preceding: ["mail/send_message", "erp/create_order"] });
      await o.report("erp/archive_order", "", { preceding: ["gone/tool", "erp/create_order"] });
    }
    const { bundles } = await o.gate.find(asking("create a purchase order", { topK: 1 }), undefined);
    expect(bundles.map(({ toolIds }) => toolIds)).toEqual([["erp/create_order", "mail/send_message"]]);
  });
});

describe("what one caller may do", () => {
  it("is bounded in time: beyond its share it hears when its turn comes, and others are not held up", async () => {
    const o = office(undefined, 10);
    let refused = 0;
    for (let n = 0; n < 10_000; n++) {
      await o.report("mail/send_message", `tell my colleague number ${n}`).catch((error: unknown) => {
        expect(error).toMatchObject({ reason: "QUOTA_EXCEEDED" });
        expect((error as { retryAfterMs?: number }).retryAfterMs).toBeGreaterThan(0);
        refused++;
      });
    }
    expect(refused).toBe(9_800);
    expect(await o.report("erp/create_order", "order paper", { caller: "other" })).toBe(true);
  });

  it("and in what it holds, however long it goes on: others' uses of the tool stay", async () => {
    const o = office(undefined, 1_000_000);
    for (let n = 0; n < 10; n++) await o.report("mail/send_message", `inform person${n}`, { caller: "quiet" });
    for (let n = 0; n < 3_000; n++) await o.report("mail/send_message", `shout word${n}`, { caller: "loud" });
    await o.world.clock.advance(5_000);
    const sizes = [...o.world.notes.notes.values()].map(({ bytes }) => bytes.byteLength);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(16_000);
    expect((await o.find("inform person7"))[0]).toBe("mail/send_message");
  });
});

it("equal reports are equal answers, in whatever order they came", async () => {
  const any = fc.record({
    toolId: fc.constantFrom("erp/create_order", "erp/approve_order", "old/create_order", "mail/send_message"),
    words: fc.constantFrom("order paper", "buy pencils", "tell my colleague", ""),
    caller: fc.constantFrom("one", "two", "three"),
    failed: fc.boolean(),
    preceding: fc.constantFrom([], ["erp/create_order"], ["mail/send_message", "erp/create_order"]),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(any, { minLength: 1, maxLength: 30 }), fc.array(fc.nat(), { minLength: 30, maxLength: 30 }), async (reports, keys) => {
      const answersAfter = async (order: readonly number[]) => {
        const o = office();
        const past = o.world.replica(7);
        await past.open("default");
        // Reports are told apart by when and by whom they were made, not by when they arrive.
        for (const i of order) {
          const { toolId, words, caller, failed, preceding } = reports[i] as (typeof reports)[number];
          const outcome = { success: !failed, latencyMs: undefined, after: preceding.filter((id) => id !== toolId) };
          const { intentOf } = await import("../../../../src/gate/intent.js");
          const says = !failed && words !== "" ? ({ kind: "confirm", intent: intentOf({ text: words }) } as const) : undefined;
          past.past("default").apply({ toolId, caller, atMs: o.world.clock.now() - 1_000 * i, nonce: i, says, outcome }, o.world.clock.now());
        }
        const s = shelf(undefined, undefined, { outcomes: past, now: () => o.world.clock.now() });
        for (const [id, { tool }] of o.tools) s.put(id, { briefDescription: tool.name });
        const answers = [];
        for (const intent of ["order paper", "buy something", "tell my colleague of the order"])
          answers.push(await s.gate.find(asking(intent), undefined));
        return answers.map(({ tools, bundles, weak }) => ({ tools: tools.map(({ toolId, score, reasons }) => ({ toolId, score, reasons })), bundles, weak }));
      };
      const order = reports.map((_, i) => i);
      const shuffled = [...order].sort((a, b) => (keys[a] as number) - (keys[b] as number));
      expect(await answersAfter(shuffled)).toEqual(await answersAfter(order));
    }),
    { numRuns: 20 },
  );
});
