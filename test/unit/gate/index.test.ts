import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { documentOf, type ToolDocument } from "../../../src/gate/document.js";
import { intentOf } from "../../../src/gate/intent.js";
import { indexOf, LiveIndex, type Pace } from "../../../src/gate/live-index.js";
import type { Hit } from "../../../src/gate/search.js";
import { EMPTY_STUB } from "../../../src/domain/stub.js";

const PACE: Pace = { monotonic: () => performance.now(), pause: () => new Promise((resolve) => setImmediate(resolve)) };
/** Pauses at every chance, so that everything else gets between. */
const OFTEN: Pace = { monotonic: ((now) => () => (now += 10))(0), pause: PACE.pause };

function tool(toolId: string, description = "", more: Partial<ToolDocument> = {}): ToolDocument {
  const [serverId = "", name = ""] = toolId.split("/");
  return documentWith({ toolId, serverId, name, description, service: serverId, ...more });
}

function documentWith(some: Pick<ToolDocument, "toolId" | "serverId" | "name"> & Partial<ToolDocument>): ToolDocument {
  return { title: "", description: "", useWhen: "", keywords: [], tags: [], service: "", parameters: [], ...some };
}

const ids = ({ hits }: { hits: readonly Pick<Hit, "tool">[] }) => hits.map((hit) => hit.tool.toolId);
/** As values that can be compared: the words that fit are worked out when asked for. */
function search(index: LiveIndex, text: string, limit = 5) {
  const { hits, ...rest } = index.search(intentOf({ text }), { limit });
  return { ...rest, hits: hits.map((hit) => ({ ...hit, matched: hit.matched() })) };
}

const WORDS = ["order", "invoice", "customer", "create", "close", "delete", "update", "list", "订单", "关闭", "report", "export"];
const anyWords = fc.array(fc.constantFrom(...WORDS), { minLength: 1, maxLength: 5 });
const anyTool = fc.record({ server: fc.constantFrom("erp", "crm", "hr"), name: anyWords, description: anyWords }).map((t) =>
  tool(`${t.server}/${t.name.filter((w) => /^[a-z]+$/.test(w)).join("_") || "x"}`, t.description.join(" ")),
);

describe("what it finds", () => {
  const tools = [
    tool("erp/create_purchase_order", "Creates a purchase order for a supplier."),
    tool("erp/close_purchase_order", "Closes an open purchase order."),
    tool("erp/list_suppliers", "Lists suppliers.", { keywords: ["vendors"] }),
    tool("weather/get_forecast", "Forecast for a place.", { parameters: [{ name: "unit", description: "", values: ["celsius"] }] }),
    tool("zh/close_order", "关闭采购订单"),
    tool("files/search", "Searches in files.", { useWhen: "a document is to be found" }),
  ];

  test.each([
    ["close the overdue purchase order", "erp/close_purchase_order"],
    ["who are our vendors", "erp/list_suppliers"],
    ["how many degrees celsius", "weather/get_forecast"],
    ["请帮我关闭这个采购订单", "zh/close_order"],
    ["find a document", "files/search"],
  ])("%s", async (text, first) => expect(ids(search(await indexOf(tools, PACE), text))[0]).toBe(first));

  test("why: the words that fit, as they were said", async () => {
    const [hit] = search(await indexOf(tools, PACE), "Close purchase orders!").hits;
    expect(hit?.matched).toEqual(expect.arrayContaining(["close", "purchase", "orders"]));
    expect(new Set(hit?.matched.flatMap((words) => words.split(" "))).size).toBe(hit?.matched.length);
    expect(hit?.absolute).toBeGreaterThan(0.5);
    expect(hit?.absolute).toBeLessThanOrEqual(1);
  });

  test("only what is accepted", async () => {
    const accept = ({ serverId }: { serverId: string }) => serverId === "zh";
    const found = (await indexOf(tools, PACE)).search(intentOf({ text: "close order 订单" }), { limit: 5, accept });
    expect(ids(found)).toEqual(["zh/close_order"]);
  });

  test("earlier turns count", async () => {
    const index = await indexOf(tools, PACE);
    const found = index.search(intentOf({ text: "yes, number 4711", history: ["I need a forecast"] }), { limit: 1 });
    expect(ids(found)).toEqual(["weather/get_forecast"]);
  });
});

describe("exact names", () => {
  const names = Array.from({ length: 7 }, (_, i) => `erp/do_task_${"abcdefg"[i]}`);
  const tools = [...names.map((id) => tool(id)), tool("x/search", "Searches."), tool("y/file_operation", "Works on files.")];

  test("seven of them are kept with a limit of five, and the five others with them", async () => {
    const found = search(await indexOf(tools, PACE), `use ${names.map((id) => id.split("/")[1]).join(", ")} and search`);
    const exact = found.hits.filter((hit) => hit.exactName).map((hit) => hit.tool.toolId);
    expect(exact.sort()).toEqual(names);
  });

  test.each(["file_operation", "fileOperation", "FileOperation", "call file.operation, please", "y/file_operation", "`file_operation`"])(
    "%s",
    async (text) => {
      const [first] = search(await indexOf(tools, PACE), text).hits;
      expect(first).toMatchObject({ tool: { toolId: "y/file_operation" }, exactName: true });
    },
  );

  test("an ordinary word is none, unless it is quoted or all that is said", async () => {
    const index = await indexOf(tools, PACE);
    const exact = (text: string) => search(index, text).hits.some((hit) => hit.exactName);
    expect(exact("search for cheap flights")).toBe(false);
    expect(exact("run `search` on it")).toBe(true);
    expect(exact("search")).toBe(true);
  });
});

describe("equal documents, equal answers", () => {
  test("in whatever order they came, with changes between, and after a rebuild", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anyTool, { maxLength: 30 }), fc.array(anyTool, { maxLength: 10 }), anyWords, fc.nat(), async (kept, passing, asked, seed) => {
        const last = new Map(kept.map((t) => [t.toolId, t]));
        const fresh = await indexOf(last.values(), PACE);
        const grown = new LiveIndex(PACE);
        await grown.load(passing);
        for (const t of shuffled([...last.values()], seed)) grown.upsert(t);
        for (const { toolId } of passing) if (!last.has(toolId)) grown.remove(toolId);
        expect(grown.size).toBe(last.size);
        expect(search(grown, asked.join(" "), 50)).toEqual(search(fresh, asked.join(" "), 50));
      }),
      { numRuns: 60 },
    );
  });

  test("ties break by tool id", async () => {
    const tools = ["b/same", "a/same", "c/same"].map((id) => tool(id, "close the order", { service: "s" }));
    expect(ids(search(await indexOf(tools, PACE), "close order", 2))).toEqual(["a/same", "b/same"]);
  });

  test("while a rebuild runs and after it", async () => {
    const index = new LiveIndex(OFTEN);
    const last = new Map<string, ToolDocument>();
    for (let i = 0; i < 3_000; i++) {
      const t = tool(`s${i % 7}/tool_${i % 1_900}`, `${WORDS[i % WORDS.length]} ${WORDS[(i * 7) % WORDS.length]} ${i}`);
      if (i % 11 === 3) last.delete(t.toolId), index.remove(t.toolId);
      else last.set(t.toolId, t), index.upsert(t);
      if (i % 400 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    const fresh = await indexOf(last.values(), PACE);
    for (const text of ["close order", "export invoice report", "tool 1500"]) expect(search(index, text)).toEqual(search(fresh, text));
    await index.settle();
    for (const text of ["close order", "export invoice report", "tool 1500"]) expect(search(index, text)).toEqual(search(fresh, text));
  });
});

describe("loads", () => {
  const many = Array.from({ length: 500 }, (_, i) => tool(`s/tool_${i}`, `order ${i}`));

  test("cancelled at any moment, the index is what it was", async () => {
    const index = await indexOf([tool("old/one", "close the order")], OFTEN);
    const before = search(index, "close order");
    for (const pauses of [0, 1, 5, 50, 700]) {
      const cancel = new AbortController();
      let left = pauses;
      const pace = { monotonic: OFTEN.monotonic, pause: async () => void (left-- === 0 && cancel.abort(new Error("cancelled"))) };
      const own = new LiveIndex(pace);
      own.upsert(tool("old/one", "close the order"));
      await expect(own.load(many, cancel.signal)).rejects.toThrow("cancelled");
      expect(search(own, "close order")).toEqual(before);
      own.upsert(tool("new/one", "close the order"));
      expect(ids(search(own, "close order"))).toEqual(["new/one", "old/one"]);
    }
  });

  test("changes that come meanwhile hold", async () => {
    const index = new LiveIndex(OFTEN);
    const loading = index.load(many);
    await new Promise((resolve) => setImmediate(resolve));
    index.upsert(tool("late/one", "a late unicorn"));
    index.upsert(tool("late/two", "a late unicorn"));
    index.remove("late/two");
    await loading;
    expect(ids(search(index, "unicorn"))).toEqual(["late/one"]);
    expect(index.size).toBe(501);
  });
});

describe("bad input", () => {
  test.each([
    ["nothing", ""],
    ["stop words", "the of and to"],
    ["emoji", "🙂🙃"],
    ["NUL", "\0\0\0"],
    ["half a surrogate pair", "\ud800\ud800"],
    ["100 KB of one word", "order ".repeat(17_000)],
    ["100 KB without a space", "x".repeat(100_000)],
    ["100 KB of Chinese", "关闭订单".repeat(25_000)],
    ["100 KB of different words", Array.from({ length: 14_000 }, (_, i) => `w${i}`).join(" ")],
  ])("%s", async (_, text) => {
    const index = await indexOf([tool("erp/close_order", "关闭订单")], PACE);
    const { terms, names } = intentOf({ text, history: [text, text] });
    expect(terms.length).toBeLessThanOrEqual(512);
    expect(names.length).toBeLessThanOrEqual(128);
    expect(search(index, text).hits.length).toBeLessThanOrEqual(1);
  });
});

describe("documents", () => {
  const stub = { ...EMPTY_STUB, serverId: "s", name: "t", briefDescription: "Reads a file." };

  test("a definition adds its description and its parameters, with what they may be", () => {
    const schema = { type: "object", properties: { mode: { type: "string", enum: ["text", "raw"], description: "How." }, at: { type: "object", properties: { line: {} } } } };
    const bytes = Buffer.from(JSON.stringify({ name: "t", description: "Reads a file. Line by line.", inputSchema: schema }));
    const { description, parameters } = documentOf(stub, "S", bytes);
    expect(description).toBe("Reads a file. Line by line.");
    expect(parameters.map(({ name }) => name)).toEqual(["mode", "at", "line"]);
    expect(parameters[0]).toEqual({ name: "mode", description: "How.", values: ["text", "raw"] });
  });

  test("bytes that are no definition add nothing", () => {
    expect(documentOf(stub, "S", Buffer.from("{"))).toEqual(documentOf(stub, "S"));
  });

  test("a huge definition is cut", () => {
    const properties = Object.fromEntries(Array.from({ length: 2_000 }, (_, i) => [`p${i}`, { description: "d".repeat(2_000) }]));
    const bytes = Buffer.from(JSON.stringify({ name: "t", description: "d".repeat(100_000), inputSchema: { type: "object", properties } }));
    const { description, parameters } = documentOf(stub, "S", bytes);
    expect(description.length).toBeLessThan(2_100);
    expect(parameters.length).toBe(64);
    expect(parameters[0]?.description.length).toBeLessThanOrEqual(300);
  });
});

function shuffled<T>(items: T[], seed: number): T[] {
  let state = seed + 1;
  const next = () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
  return items.map((item) => ({ item, key: next() })).sort((a, b) => a.key - b.key).map(({ item }) => item);
}
