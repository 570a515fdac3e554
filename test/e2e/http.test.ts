/** The HTTP listener of a real registry: the README's commands as printed, official clients, definitions as text. */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { createClient } from "@connectrpc/connect";
import { beforeEach, describe, expect, it } from "vitest";
import { EventType, RegistryService, ToolResult_Outcome } from "../../src/gen/toolcrib/v1/registry_service_pb.js";
import { ALL_WAYS, WAYS } from "../integration/http-support.js";
import { type RegistryProcess, RemoteRegistry, declared, startRegistry } from "../support/registry.js";
import { eventually } from "../support/upstream.js";

const run = promisify(execFile);
const README = readFileSync(new URL("../../README.md", import.meta.url), "utf8");

let registry: RegistryProcess;
let grpc: RemoteRegistry;
beforeEach(async () => {
  registry = await startRegistry({ store: "memory" });
  grpc = new RemoteRegistry(registry.grpc);
});

const word = { name: "word_count", description: "Counts words – ünïcode 🧰.", inputSchema: { type: "object", z: 1, a: 2 } };

async function post(method: string, body: object): Promise<any> {
  const answer = await fetch(`${registry.http}/toolcrib.v1.RegistryService/${method}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return answer.json();
}

/** The commands of the README's section, each as a shell would get it. */
function commands(): string[] {
  const block = /### curl and browsers[\s\S]*?```sh\n([\s\S]*?)```/.exec(README)?.[1] ?? "";
  return block.split(/\n(?=curl )/);
}

const HAS_TOOLS = await run("sh", ["-c", "command -v curl && command -v jq"]).then(
  () => true,
  () => false,
);

describe("the README's commands", () => {
  it("are at least three", () => expect(commands().length).toBeGreaterThanOrEqual(3));

  it.skipIf(!HAS_TOOLS)("work as printed", async () => {
    await grpc.call("register", declared("sample", [word]));
    const shell = async (command: string | undefined): Promise<string> => {
      const here = (command ?? "").replaceAll("http://127.0.0.1:7851", registry.http);
      expect(here).toContain(registry.http);
      return (await run("bash", ["-c", here])).stdout;
    };
    const [stubs, schema, register] = commands();
    expect(JSON.parse(await shell(stubs)).stubs).toMatchObject([{ toolId: "sample/word_count" }]);
    expect((await shell(schema)).trimEnd()).toBe(JSON.stringify(word));
    expect(JSON.parse(await shell(register)).tools).toMatchObject([{ name: "greet", outcome: "OUTCOME_ACCEPTED" }]);
    expect(await grpc.toolIds()).toEqual(["by-hand/greet", "sample/word_count"]);
  });

  it.skipIf(!HAS_TOOLS)("so does the one that / shows", async () => {
    const { example } = (await (await fetch(`${registry.http}/`)).json()) as { example: string };
    expect(JSON.parse((await run("bash", ["-c", example])).stdout)).toHaveProperty("revision");
  });
});

describe("a definition as text", () => {
  const text = JSON.stringify(word).replace('"z":1', '"z": 1.0');
  const register = (tools: object[]) =>
    post("Register", { serverId: "hand", instanceId: "by-hand-1", leaseTtl: "60s", declared: { tools } });

  it("is taken and given back byte for byte (P10), on both listeners, and only JSON answers hold it", async () => {
    expect((await register([{ definitionJson: text }])).tools).toMatchObject([{ name: "word_count", outcome: "OUTCOME_ACCEPTED" }]);
    await grpc.call("register", { ...declared("wire", []), declared: { tools: [{ definitionJson: text }] } });
    for (const toolId of ["hand/word_count", "wire/word_count"]) {
      const { schema } = await post("GetFullSchema", { toolId });
      expect(schema.definitionJson).toBe(text);
      expect(Buffer.from(schema.definition, "base64").toString()).toBe(text);
      const overGrpc = (await grpc.call("getFullSchema", { toolId })).schema;
      expect([overGrpc.definition.toString(), overGrpc.definitionJson]).toEqual([text, ""]);
    }
    const { results } = await post("BatchGetFullSchemas", { toolIds: ["hand/word_count", "hand/none"] });
    expect(results[0].schema.definitionJson).toBe(text);
    expect(results[1].error.reason).toBe("NOT_FOUND");
    const binary = createClient(RegistryService, WAYS["Connect binary"](registry.http));
    const answer = await binary.getFullSchema({ key: { case: "toolId", value: "hand/word_count" } });
    expect(answer.schema?.definitionJson).toBe("");
    expect(Buffer.from(answer.schema?.definition ?? []).toString()).toBe(text);
  });

  it("beside the same in base64 rejects that tool alone (P9), on both listeners", async () => {
    const twice = { definition: Buffer.from(text).toString("base64"), definitionJson: text };
    const other = { definitionJson: JSON.stringify({ ...word, name: "other" }) };
    const { tools } = await register([twice, other]);
    expect(tools).toMatchObject([
      { name: "word_count", outcome: "OUTCOME_REJECTED", reasons: [expect.stringContaining("both definition and definition_json")] },
      { name: "other", outcome: "OUTCOME_ACCEPTED" },
    ]);
    const both = { definition: Buffer.from(text), definitionJson: text };
    const overGrpc = await grpc.call("register", { ...declared("wire", []), declared: { tools: [both, other] } });
    expect(overGrpc.tools[0].reasons).toEqual(tools[0].reasons);
  });
});

describe("an official client", () => {
  it.each(ALL_WAYS)("over %s registers, reads, watches and resumes without a gap (P2, P4)", async (way) => {
    const client = createClient(RegistryService, WAYS[way](registry.http));
    const offer = (names: string[]) => ({
      serverId: "s",
      instanceId: "instance-1",
      offer: {
        case: "declared" as const,
        value: { tools: names.map((name) => ({ definitionJson: JSON.stringify({ ...word, name }) })) },
      },
    });
    const registered = await client.register(offer(["a"]));
    expect(registered.tools[0]?.outcome).toBe(ToolResult_Outcome.ACCEPTED);
    expect((await client.getStubs({ minRevision: registered.revision })).stubs.map((s) => s.toolId)).toEqual(["s/a"]);

    const told: string[] = [];
    let token = "";
    const follow = async (resumeToken: string, until: () => boolean): Promise<void> => {
      for await (const { message } of client.watch({ resumeToken })) {
        if (message.case === "snapshot") told.push(...message.value.stubs.map((s) => `SNAPSHOT ${s.toolId}`));
        if (message.case === "change") told.push(...message.value.events.map((e) => `${EventType[e.type]} ${e.toolId}`));
        if (message.value?.resumeToken) token = message.value.resumeToken;
        if (until()) return;
      }
    };
    await follow("", () => token !== "");
    expect(told.splice(0)).toEqual(["SNAPSHOT s/a"]);
    await client.register(offer(["a", "b"]));
    await client.register(offer(["b"]));
    await follow(token, () => told.length >= 2);
    expect(told).toEqual(["REGISTERED s/b", "DEREGISTERED s/a"]);
  });

  it("hears DRAINING when the registry stops, and the registry stops at once", async () => {
    const ends = ALL_WAYS.map(async (way) => {
      let opened = false;
      const client = createClient(RegistryService, WAYS[way](registry.http));
      const reading = (async () => {
        for await (const _ of client.watch({})) opened = true;
      })().then(
        () => "ended",
        (error: Error) => error.message,
      );
      await eventually(
        () => opened,
        (is) => is,
      );
      return { reading };
    });
    const open = await Promise.all(ends);
    expect(await registry.stop()).toBe(0);
    for (const { reading } of open) expect(await reading).toMatch(/unavailable.*this replica is stopping/);
  });
});
