/** `toolcrib enhance`: proposed by a model over real HTTP, reviewed in a file, approved, shown, withdrawn. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { toolcribDone } from "../support/cli.js";
import { type Behaviour, startModel, status } from "../support/model-server.js";
import { declared, RemoteRegistry, startRegistry, temporaryFolder } from "../support/registry.js";

const KEY = "sk-secret-0123456789";
const TOOLS = [
  { name: "close_order", description: "Closes it", inputSchema: { type: "object", properties: { id: {} }, required: ["id"] } },
  { name: "open_order", description: "Opens an order for a customer again", inputSchema: { type: "object" } },
];
const LABEL = { brief_description: "Closes a purchase order once it is paid.", keywords: ["settle", "finish"], use_when: "An order is paid and nothing is left to do." };
const good: Behaviour = () => JSON.stringify(LABEL);

async function bench(behaviour: Behaviour = good) {
  const registry = await startRegistry();
  const remote = new RemoteRegistry(registry.grpc);
  await remote.call("register", declared("shop", TOOLS));
  await remote.call("register", declared("bank", [{ ...TOOLS[1], name: "open_account" }]));
  const model = await startModel(behaviour);
  const folder = await temporaryFolder();
  const file = join(folder, "labels.yaml");
  const run = (...args: string[]) => toolcribDone(["enhance", ...args, "--registry", registry.grpc], { TOOLCRIB_MODEL_KEY: KEY });
  const propose = (...args: string[]) => run("propose", "shop", "--url", model.url, "--model", "tiny", "--out", file, ...args);
  const stub = async (name = "close_order") => (await remote.call("getStubs", {})).stubs.find((s: { name: string }) => s.name === name);
  return { registry, remote, model, file, run, propose, stub };
}

describe("toolcrib enhance", () => {
  it("proposes into a file, and approves, shows and withdraws what was reviewed", { timeout: 120_000 }, async () => {
    const { registry, remote, model, file, run, propose, stub } = await bench();
    const before = await stub();
    const proposed = await propose();
    expect(proposed, proposed.stderr).toMatchObject({ code: 0, stdout: `2 of 2 labels proposed in ${file}: review them, then \`toolcrib enhance approve ${file}\`.\n` });
    expect(await stub(), "nothing is in force").toEqual(before);
    expect(model.requests).toHaveLength(2);
    const [asked] = model.requests.filter(({ body }) => body.messages[1]?.content.includes('"close_order"'));
    expect(asked).toMatchObject({ path: "/v1/chat/completions", authorization: `Bearer ${KEY}`, body: { model: "tiny" } });
    expect(asked?.body.messages[1]?.content).toContain("open_order: Opens an order");
    expect(asked?.body.messages[1]?.content, "what lint says").toContain("no description (id)");

    const text = readFileSync(file, "utf8");
    expect(text).not.toContain(KEY);
    const { overlays } = parse(text) as { overlays: Record<string, unknown>[] };
    expect(overlays[0]).toEqual({ tool: "shop/close_order", ...LABEL, made_for: { digest: before.digest, brief_description: "Closes it", keywords: [], use_when: "" } });
    expect(await propose(), "a reviewed file is not lost").toMatchObject({ code: 1, stderr: expect.stringContaining("is there already") as string });

    // The reviewer changes one and leaves the other out.
    const edited = { overlays: [{ ...overlays[0], use_when: "An order is paid." }] };
    writeFileSync(file, JSON.stringify(edited));
    expect(await run("approve", file)).toMatchObject({ code: 0, stdout: "shop: 1 label shown to everybody.\n", stderr: "" });
    expect(await stub()).toEqual({ ...before, briefDescription: LABEL.brief_description, keywords: LABEL.keywords, useWhen: "An order is paid." });
    expect((await remote.call("getFullSchema", { toolId: "shop/close_order" })).schema.digest).toBe(before.digest);
    expect((await remote.call("findTools", { intent: "settle what is finished" })).tools[0].stub.toolId).toBe("shop/close_order");
    expect(await run("approve", file)).toMatchObject({ stdout: "shop: 0 labels shown to everybody; 1 as before.\n" });
    const shown = await run("show");
    expect(shown.stdout).toMatch(/^shop\/close_order {2}shown {2}\(o[0-9a-f]{15}, approved by anonymous at .* UTC\)\n {2}- description: Closes it\n {2}\+ description: Closes a purchase/);
    // Lint judges what the registrant wrote, not what covers it.
    expect((await toolcribDone(["lint", "shop", "--registry", registry.grpc])).stdout).toContain("no description (id)");

    // Proposed anew it is made for the registrant's own label, not for the overlay.
    await propose("--force", "--tool", "shop/close_order");
    expect(await run("approve", file)).toMatchObject({ code: 0, stdout: "shop: 1 label shown to everybody.\n" });

    // Through a restart, and a server that left meanwhile.
    await remote.call("deregister", { serverId: "shop" });
    await registry.stop();
    const second = await startRegistry({ dataDir: registry.dataDir });
    const again = new RemoteRegistry(second.grpc);
    await again.call("register", declared("shop", TOOLS));
    expect((await again.call("getStubs", {})).stubs[1]).toMatchObject({ name: "close_order", briefDescription: LABEL.brief_description });
    const at = ["--registry", second.grpc];
    expect(await toolcribDone(["enhance", "withdraw", "shop/close_order", "nobody", ...at])).toMatchObject({
      code: 0,
      stdout: "shop: 1 withdrawn: close_order.\nnobody: nothing to withdraw.\n",
    });
    expect((await again.call("getStubs", {})).stubs[1]).toMatchObject({ briefDescription: "Closes it", keywords: [] });
    expect((await toolcribDone(["enhance", "show", ...at])).stdout).toBe("No overlays.\n");
    for (const process of [registry, second]) expect(process.output()).not.toContain(KEY);
  });

  it("refuses what does not fit any more, and files that are none, with every problem", { timeout: 60_000 }, async () => {
    const { remote, file, run, propose, stub } = await bench();
    await propose();
    await remote.call("register", declared("shop", [{ ...TOOLS[0], title: "Close" }, TOOLS[1] as object]));
    const refused = await run("approve", file);
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toMatch(/^shop: overlays\[0\]\.digest: is sha256:.*propose the overlay anew/m);
    expect(await stub()).toMatchObject({ briefDescription: "Closes it" });
    expect(await run("approve", file, "--tool", "shop/open_order")).toMatchObject({ code: 0 });

    for (const [text, says] of [
      ["{", /cannot be read/],
      ["overlays: 7", /it needs a list/],
      ["overlays: [7]", /overlays\[0\]: an object is expected/],
      ["overlays:\n- tool: x\n  brief_description: 5\n  keywords: a", /overlays\[0\]\.tool: .*\n.*made_for\.digest.*\n.*keywords: a list.*\n.*brief_description: a text is expected/],
    ] as const) {
      writeFileSync(file, text);
      const answer = await run("approve", file);
      expect(answer.code, text).toBe(1);
      expect(answer.stderr, text).toMatch(says);
    }
    expect((await run("approve", "/nowhere.yaml")).stderr).toContain("cannot be read");
  });

  const BROKEN: readonly (readonly [string, Behaviour, RegExp])[] = [
    ["hangs", () => undefined, /did not answer within 300 ms/],
    ["answers nonsense", () => "I would rather not.", /nothing that may be a label: it holds no JSON object/],
    ["answers another shape", () => '{"brief_description": 7}', /must be strings/],
    ["answers too long a label", () => JSON.stringify({ ...LABEL, brief_description: "x".repeat(601) }), /label\.brief_description is 601 characters long, the limit is 600/],
    ["answers hidden characters", () => JSON.stringify({ ...LABEL, use_when: "now \u202e" }), /label\.use_when holds the hidden character U\+202E/],
    ["answers without end", (_r, response) => {
      response.writeHead(200);
      response.end("x".repeat(300 * 1024));
      return undefined;
    }, /answered with more than 262144 bytes/],
    ["is no API", (_r, response) => void response.end("<html>") as undefined, /something else than JSON/],
    ["refuses the key", status(401), /HTTP 401: the key is missing or wrong/],
    ["is broken", status(500), /HTTP 500/],
    ["sends the caller elsewhere", status(307, { location: "http://127.0.0.1:1/steal" }), /HTTP 307/],
  ];

  it("writes nothing where the model hangs, answers nonsense or too much, or refuses", { timeout: 120_000 }, async () => {
    const { model, file, propose } = await bench();
    for (const [what, behaviour, says] of BROKEN) {
      model.behave(behaviour);
      const before = model.requests.length;
      const answer = await propose("--timeout", what === "hangs" ? "300ms" : "20s");
      expect(answer.code, what).toBe(1);
      expect(answer.stderr, what).toMatch(says);
      expect(`${answer.stdout}${answer.stderr}`, what).not.toContain(KEY);
      expect(() => readFileSync(file), what).toThrow();
      expect(model.requests.length - before, what).toBeLessThanOrEqual(4);
    }
  });

  it("asks again with what was wrong, and without JSON mode where that is not known", { timeout: 60_000 }, async () => {
    const strange: Behaviour = ({ body }, response) => {
      if (body.response_format) return status(400)({} as never, response);
      return body.messages.length === 2 ? "{}" : `Here it is:\n\`\`\`json\n${JSON.stringify(LABEL)}\n\`\`\``;
    };
    const { model, propose } = await bench(strange);
    expect(await propose("--at-once", "1")).toMatchObject({ code: 0 });
    expect(model.requests.map(({ body }) => [body.messages.length, body.response_format !== undefined])).toEqual([[2, true], [2, false], [4, false], [2, false], [4, false]]);
    expect(model.requests[2]?.body.messages[3]?.content).toContain("That cannot be taken");
  });

  it("says what is missing on the command line, and never sends a key in the clear", { timeout: 60_000 }, async () => {
    const { run, file, model, propose } = await bench();
    expect(await run("propose", "shop", "--out", file)).toMatchObject({ code: 2, stderr: expect.stringContaining("--url or TOOLCRIB_MODEL_URL") as string });
    expect(await run("propose", "shop", "--out", file, "--url", model.url)).toMatchObject({ code: 2, stderr: expect.stringContaining("--model") as string });
    expect(await run("propose", "shop", "--out", file, "--model", "m", "--url", "http://models.example/v1")).toMatchObject({ code: 2, stderr: expect.stringContaining("https only") as string });
    expect(await run("propose", "shop", "--out", file, "--model", "m", "--url", "https://user:pass@models.example")).toMatchObject({ code: 2, stderr: expect.not.stringContaining("pass@") as string });
    expect(await run("propose", "shop", "--out", file, "--model", "m", "--url", "ftp://x")).toMatchObject({ code: 2 });
    const query = await run("propose", "shop", "--out", file, "--model", "m", "--url", "http://127.0.0.1:1/v1?api_key=hidden");
    expect(query.code).toBe(1);
    expect(query.stderr).toContain("http://127.0.0.1:1/v1/chat/completions cannot be reached");
    expect(query.stderr).not.toContain("hidden");
    expect((await propose("--tool", "shop/nobody")).stderr).toContain("shop/nobody: no such tool");
    expect((await run("propose", "nobody", "--out", file, "--url", model.url, "--model", "m")).stderr).toMatch(/no/);
    expect((await propose("--most", "1")).stderr).toContain("1 more tools were not asked about");
  });
});

