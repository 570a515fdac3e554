/** FindTools by meaning: a real registry, and a real endpoint for vectors. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { type EmbeddingsServer, good, send, startEmbeddings } from "../support/embeddings-server.js";
import { declared, RemoteRegistry, type RegistryProcess, startRegistry } from "../support/registry.js";

const tool = (name: string, description: string) => ({ name, description, inputSchema: { type: "object" } });
const TOOLS = [
  tool("get_forecast", "What the weather will be at a place."),
  tool("pay_invoice", "Pay a bill."),
  tool("create_order", "Buy something from a supplier."),
  tool("list_meetings", "What is in the calendar."),
];
/** None of its words is a tool's. */
const UMBRELLA = "shall I take an umbrella";

interface Rig {
  readonly embeddings: EmbeddingsServer;
  readonly registry: RegistryProcess;
  find(intent: string): Promise<{ meaning: string; names: string[]; reasons: string[]; weak: boolean }>;
}

async function start(options: { readonly args?: readonly string[]; readonly dataDir?: string; readonly embeddings?: EmbeddingsServer } = {}): Promise<Rig> {
  const embeddings = options.embeddings ?? (await startEmbeddings());
  const registry = await startRegistry({
    ...(options.dataDir === undefined ? {} : { dataDir: options.dataDir }),
    args: ["--embedder", embeddings.url, "--embedder-model", "tiny", "--embedder-budget", "10000", ...(options.args ?? [])],
  });
  const remote = new RemoteRegistry(registry.grpc);
  await remote.call("register", declared("all", TOOLS));
  const find = async (intent: string) => {
    const { meaning, tools, weak } = await remote.call("findTools", { intent });
    return {
      meaning,
      weak,
      names: tools.map((t: any) => t.stub.name),
      reasons: (tools[0]?.reasons ?? []).map(({ kind }: any) => kind),
    };
  };
  return { embeddings, registry, find };
}

/** When all tools have their vectors. */
async function built({ find }: Rig): Promise<void> {
  await expect.poll(async () => (await find("get forecast pay invoice create order list meetings umbrella")).meaning).toBe("MEANING_STATE_USED");
}

describe("the dense arm", () => {
  it("finds a tool that has none of the intent's words, in another language too, and says why", async () => {
    const rig = await start();
    await built(rig);
    expect(await rig.find(UMBRELLA)).toMatchObject({ meaning: "MEANING_STATE_USED", reasons: ["KIND_MEANING"] });
    expect((await rig.find(UMBRELLA)).names[0]).toBe("get_forecast");
    expect((await rig.find("明天天气")).names[0]).toBe("get_forecast");
    expect((await rig.find("what do I owe the electrician")).names[0]).toBe("pay_invoice");
  });

  it("asks for all tools of a registration in one request, and for an intent once", async () => {
    const rig = await start();
    await built(rig);
    await rig.find(UMBRELLA);
    await rig.find(UMBRELLA);
    const texts = rig.embeddings.asked.map((asked) => asked.texts);
    expect(texts.filter((one) => one.length > 1).map((one) => one.length)).toEqual([TOOLS.length]);
    expect(texts.filter(([text]) => text === UMBRELLA)).toHaveLength(1);
    expect(rig.embeddings.asked.every(({ model }) => model === "tiny")).toBe(true);
  });

  it("does not ask again for tools whose vectors are in the store after a restart", async () => {
    const dataDir = await mkdtemp(join(tmpdir(), "toolcrib-meaning-"));
    onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
    const first = await start({ dataDir });
    await built(first);
    await first.registry.stop();
    const asked = first.embeddings.asked.filter(({ texts }) => texts.length > 1).length;
    const second = await start({ dataDir, embeddings: first.embeddings });
    await built(second);
    expect((await second.find(UMBRELLA)).names[0]).toBe("get_forecast");
    expect(first.embeddings.asked.filter(({ texts }) => texts.length > 1)).toHaveLength(asked);
  });

  it.each([
    ["HTTP 500", (_: readonly string[], r: Parameters<typeof send>[0]) => send(r, 500, { error: "no" })],
    ["no JSON", (_: readonly string[], r: Parameters<typeof send>[0]) => void r.end("<html>")],
    ["a zero vector", (t: readonly string[], r: Parameters<typeof send>[0]) => send(r, 200, { data: t.map((_, index) => ({ index, embedding: new Array(8).fill(0) })) })],
    ["other dimensions", (t: readonly string[], r: Parameters<typeof send>[0]) => send(r, 200, { data: t.map((_, index) => ({ index, embedding: [1, 2, 3] })) })],
    ["too few vectors", (_: readonly string[], r: Parameters<typeof send>[0]) => send(r, 200, { data: [] })],
    ["words instead of numbers", (t: readonly string[], r: Parameters<typeof send>[0]) => send(r, 200, { data: t.map((_, index) => ({ index, embedding: new Array(8).fill("x") })) })],
  ])("answers by words and says so when the endpoint gives %s; after three it is left alone", async (_, behave) => {
    const rig = await start();
    await built(rig);
    rig.embeddings.behave(behave);
    const answers = [];
    for (const n of [1, 2, 3, 4, 5]) answers.push(await rig.find(`pay invoice ${n}`));
    expect(answers.map(({ meaning }) => meaning)).toEqual(new Array(5).fill("MEANING_STATE_FAILED"));
    expect(answers.every(({ names }) => names[0] === "pay_invoice")).toBe(true);
    expect(rig.embeddings.asked.filter(({ texts: [text] }) => text?.startsWith("pay invoice "))).toHaveLength(3);
    await expect.poll(async () => (await fetch(`${rig.registry.ops}/metrics`)).text()).toMatch(/toolcrib_embeddings_total\{[^}]*result="failed"[^}]*\} 3/);
  });

  it("answers by words at once when the endpoint is late, and takes what comes later for the next question", async () => {
    const late = await startEmbeddings();
    const registry = await startRegistry({ args: ["--embedder", late.url, "--embedder-model", "tiny", "--embedder-budget", "40"] });
    const remote = new RemoteRegistry(registry.grpc);
    await remote.call("register", declared("all", TOOLS));
    const meaningOf = async (intent: string) => (await remote.call("findTools", { intent })).meaning;
    await expect.poll(() => meaningOf("a first one")).not.toBe("MEANING_STATE_BUILDING");
    const held: (() => void)[] = [];
    late.behave((texts, response) => void held.push(() => send(response, 200, { data: good(texts) })));
    const { meaning, tools } = await remote.call("findTools", { intent: "pay invoice soon" });
    expect(meaning).toBe("MEANING_STATE_LATE");
    expect(tools[0].stub.name).toBe("pay_invoice");
    await expect.poll(() => late.asked.some(({ texts: [text] }) => text === "pay invoice soon")).toBe(true);
    for (const answer of held) answer();
    await expect.poll(() => meaningOf("pay invoice soon")).toBe("MEANING_STATE_USED");
    expect(late.asked.filter(({ texts: [text] }) => text === "pay invoice soon")).toHaveLength(1);
  });

  it("leaves out the one tool whose text the endpoint refuses, and embeds the others", async () => {
    const embeddings = await startEmbeddings();
    embeddings.behave((texts, response) =>
      texts.some((text) => text.includes("Pay a bill")) ? send(response, 400, { error: "no" }) : send(response, 200, { data: good(texts) }),
    );
    const rig = await start({ embeddings });
    await built(rig);
    await expect.poll(async () => (await rig.find(UMBRELLA)).names[0]).toBe("get_forecast");
    await expect.poll(() => rig.registry.logs().some(({ what }) => what === "all/pay_invoice")).toBe(true);
    expect((await rig.find("pay invoice")).names[0]).toBe("pay_invoice");
  });

  it("shows the key to the endpoint and to nobody else", async () => {
    const folder = await mkdtemp(join(tmpdir(), "toolcrib-key-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    await writeFile(join(folder, "key"), "sk-planted-4711\n");
    const rig = await start({ args: ["--embedder-key-file", join(folder, "key")] });
    await built(rig);
    rig.embeddings.behave((_, response) => send(response, 401, { error: "bad key sk-planted-4711" }));
    expect((await rig.find("anything else")).meaning).toBe("MEANING_STATE_FAILED");
    expect(rig.embeddings.asked.every(({ authorization }) => authorization === "Bearer sk-planted-4711")).toBe(true);
    await expect.poll(() => rig.registry.output()).toContain("HTTP 401");
    expect(rig.registry.output()).not.toContain("4711");
  });

  it("is refused at the start without a model", async () => {
    await expect(startRegistry({ args: ["--embedder", "http://127.0.0.1:9/v1"] })).rejects.toThrow(
      /--embedder \(TOOLCRIB_EMBEDDER\) needs --embedder-model/,
    );
  });
});
