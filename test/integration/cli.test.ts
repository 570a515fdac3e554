import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, McpServer as McpServerV2 } from "@modelcontextprotocol/server";
import { McpServer as McpServerV1 } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { describe, expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { registerServer } from "../../src/client/registrar.js";
import { toolcrib, toolcribDone } from "../support/cli.js";
import { startRegistry, temporaryFolder } from "../support/registry.js";
import { corpusFile, startFixture } from "../support/servers.js";
import { freePort } from "../support/ports.js";
import { Failure, SmallRegistry, until } from "../support/small-registry.js";

interface StubJson {
  readonly toolId: string;
  readonly tags?: string[];
  readonly digest?: string;
}

/** The command line against one registry. */
function at(address: string) {
  const run = (...args: string[]) => toolcribDone([...args, "--registry", address]);
  const ls = async (...args: string[]) => JSON.parse((await run("ls", "--json", ...args)).stdout) as StubJson[];
  return { run, ls };
}

const corpusNames = (name: string) =>
  (JSON.parse(readFileSync(corpusFile(name), "utf8")) as { tools: { name: string }[] }).tools
    .map((tool) => tool.name)
    .sort();

describe("the command line against a registry", () => {
  it("registers, lists, gets byte for byte and deregisters a server that the registry lists itself", async () => {
    const { grpc } = await startRegistry();
    const { run, ls } = at(grpc);
    expect((await run("ls")).stdout).toBe("No tools.\n");
    expect((await run("servers")).stdout).toBe("No servers.\n");
    const git = await startFixture("corpus-server.mjs", [corpusFile("git")]);
    const names = corpusNames("git");
    const registered = await run("register", "--id", "git", "--url", git.url, "--tag", "vcs", "--tag", "demo");
    expect(registered).toMatchObject({ code: 0, stdout: `Registered git: ${names.length} tools listed.\n` });
    const stubs = await ls();
    expect(stubs.map((stub) => stub.toolId)).toEqual(names.map((name) => `git/${name}`));
    expect(stubs.every((stub) => stub.tags?.join() === "demo,vcs")).toBe(true);
    expect(await ls("--tag", "vcs,demo", "--server", "git", "--available")).toEqual(stubs);
    expect(await ls("--tag", "other")).toEqual([]);
    expect((await ls("--prefix", "git_diff")).every((stub) => stub.toolId.startsWith("git/git_diff"))).toBe(true);

    const human = (await run("ls")).stdout.trimEnd().split("\n");
    expect(human.length).toBe(names.length + 2);
    expect(human.every((text) => text.length <= 100)).toBe(true);
    expect(human.at(-1)).toMatch(/^\d+ tools; full schemas: [\d,]+ tokens \(estimated\)$/);

    const corpus = readFileSync(corpusFile("git"), "utf8");
    const raw = await run("get", `git/${names[0]}`, "--raw");
    expect(corpus).toContain(raw.stdout);
    expect(JSON.parse(raw.stdout)).toMatchObject({ name: names[0] });
    const pretty = await run("get", `git/${names[0]}`);
    expect(JSON.parse(pretty.stdout)).toEqual(JSON.parse(raw.stdout));
    expect(pretty.stderr).toMatch(/tokens \(estimated\), sha256:/);
    const input = await run("get", `git/${names[0]}`, "--input-only");
    expect(JSON.parse(input.stdout)).toEqual((JSON.parse(raw.stdout) as { inputSchema: object }).inputSchema);
    const json = JSON.parse((await run("get", `git/${names[0]}`, "--json")).stdout) as Record<string, unknown>;
    expect(json).toMatchObject({ toolId: `git/${names[0]}`, digest: stubs[0]?.digest, definition: { name: names[0] } });
    expect((await run("get", stubs[0]!.digest!, "--raw")).stdout).toBe(raw.stdout);

    expect((await run("servers")).stdout).toContain("standing");
    expect(await run("deregister", "git")).toMatchObject({ code: 0, stdout: "Removed git.\n" });
    expect((await run("deregister", "git")).stdout).toBe("There was no git: nothing to remove.\n");
    expect(await ls()).toEqual([]);
  }, 60_000);

  it("says clearly what is pending, rejected, missing or wrong", async () => {
    const { grpc } = await startRegistry();
    const { run } = at(grpc);
    const url = `http://127.0.0.1:${await freePort()}/mcp`;
    const pending = await run("register", "--id", "later", "--url", url);
    expect(pending).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(
        /^Registered later, but it could not be listed yet: .*refuses connections.*It is listed when it can be\.\n$/s,
      ),
    });

    const bad = await run("register", "--id", "Bad Name", "--url", "ftp://x/y");
    expect(bad.code).toBe(1);
    expect(bad.stderr.split("\n").filter((text) => text.startsWith("  ")).length).toBe(2);

    expect(await run("get", "no/such")).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringContaining("no/such") as string,
    });
    expect(await run("get", "noslash")).toMatchObject({ code: 2 });
    expect(await run("ls", "--nonsense")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--nonsense") as string,
    });
    expect(await run("deregister")).toMatchObject({ code: 2 });
    expect(await run("deregister", "a", "--lease", "b")).toMatchObject({ code: 2 });
    expect(await toolcribDone(["ls", "--registry", "ftp://x"])).toMatchObject({ code: 2 });
    expect(await toolcribDone(["ls"], { TOOLCRIB_URL: `grpc://${grpc}` })).toMatchObject({ code: 0, stderr: "" });
    const away = await toolcribDone(["ls", "--registry", `127.0.0.1:${await freePort()}`]);
    expect(away).toMatchObject({ code: 1, stdout: "" });
    expect(away.stderr.split("\n").length).toBe(3);
  }, 60_000);

  it("wraps the sample server; watch tells of its coming, its going, and goes on after kill -9 of the registry", async () => {
    const dataDir = await temporaryFolder();
    const port = await freePort();
    const first = await startRegistry({ dataDir, port });
    const watch = toolcrib(["watch", "--json", "--registry", first.grpc]);
    await until(() => watch.stderr().includes("watching 0 tools"), "the snapshot");
    const wrap = toolcrib([
      "wrap",
      "--id",
      "sample",
      "--tag",
      "demo",
      "--registry",
      first.grpc,
      "--",
      process.execPath,
      "dist/cli/bin.js",
      "sample",
    ]);
    const events = () =>
      watch
        .stdout()
        .trim()
        .split("\n")
        .filter(Boolean)
        .map((text) => JSON.parse(text) as { type: string; toolId: string });
    const ids = ["convert_units", "days_between", "sort_lines", "word_count"].map((name) => `sample/${name}`);
    await until(() => events().length === 4, "four events");
    expect(events().map((event) => event.toolId)).toEqual(ids);
    expect(events().every((event) => event.type === "REGISTERED")).toBe(true);
    expect((await at(first.grpc).run("get", "sample/word_count", "--raw")).stdout).toContain('"name":"word_count"');

    await first.kill();
    await until(() => watch.stderr().includes("trying again"), "the notice of the loss");
    const second = await startRegistry({ dataDir, port });
    wrap.process.kill("SIGTERM");
    expect(await wrap.exit).toEqual([0, null]);
    await until(() => events().length >= 8, "four more events");
    expect(
      events()
        .slice(4)
        .map(({ type, toolId }) => [type, toolId]),
    ).toEqual(ids.map((id) => ["DEREGISTERED", id]));
    expect(watch.stderr()).not.toContain("missed");
    watch.process.kill("SIGINT");
    expect(await watch.exit).toEqual([0, null]);
    expect(watch.stderr()).toContain("connected again");
    expect(watch.stderr()).not.toContain("    at ");
    expect(await second.stop()).toBe(0);
  }, 60_000);

  it("starts the registry itself", async () => {
    const run = toolcrib([
      "serve",
      "--grpc-address",
      "127.0.0.1:0",
      "--ops-address",
      "127.0.0.1:0",
      "--http-address",
      "127.0.0.1:0",
      "--data-dir",
      await temporaryFolder(),
    ]);
    await until(() => run.stdout().includes("is up: gRPC"), "the greeting");
    run.process.kill("SIGTERM");
    expect(await run.exit).toEqual([0, null]);
    const bad = await toolcribDone(["--store", "nonsense"]);
    expect(bad.code).toBe(1);
    expect(bad.stderr).toContain("--store");
  });
});

describe("the registrar and a registry", () => {
  const addTools = (
    server: { registerTool(name: string, config: object, run: () => object): unknown },
    description: string,
  ) => {
    server.registerTool("refund", { description, inputSchema: z.object({ id: z.string() }) }, () => ({ content: [] }));
    server.registerTool("invoice", { description: "Sends an invoice." }, () => ({ content: [] }));
  };

  const makeV1 = () => new McpServerV1({ name: "billing", version: "1" });
  const makeV2 = () => new McpServerV2({ name: "billing", version: "1" });
  const servers = {
    v1: (description: () => string) => ({
      template: makeV1(),
      serve: createServer((request, response) => {
        const server = makeV1();
        addTools(server as never, description());
        const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
        void server.connect(transport as never).then(() => transport.handleRequest(request, response));
      }),
    }),
    v2: (description: () => string) => ({
      template: makeV2(),
      serve: createServer(
        toNodeHandler(
          createMcpHandler(() => {
            const server = makeV2();
            addTools(server as never, description());
            return server;
          }),
        ) as never,
      ),
    }),
  };

  it.each(["v1", "v2"] as const)(
    "%s: digests first, the definition when somebody asks, the new one after a change",
    async (kind) => {
      let description = "Gives money back.";
      const { template, serve } = servers[kind](() => description);
      serve.listen(0, "127.0.0.1");
      onTestFinished(() => {
        serve.closeAllConnections();
        serve.close();
      });
      await until(() => serve.address(), "the endpoint");
      const { grpc } = await startRegistry();
      const { run, ls } = at(grpc);
      addTools(template as never, description);
      const registration = registerServer(template, {
        serverId: "billing",
        endpoint: `http://127.0.0.1:${(serve.address() as AddressInfo).port}/mcp`,
        registry: grpc,
        deregisterOnExit: false,
      });
      onTestFinished(() => registration.close());
      await until(() => registration.leaseId, "a lease");
      const [, before] = await ls();
      expect(before).toMatchObject({ toolId: "billing/refund" });
      const loaded = JSON.parse((await run("get", "billing/refund", "--json")).stdout) as {
        digest: string;
        definition: object;
      };
      expect(loaded).toMatchObject({ digest: before?.digest, freshness: "LIVE", definition: { description } });

      description = "Gives money back, at most once.";
      const tools = (template as unknown as { _registeredTools: Record<string, { update(changes: object): void }> })
        ._registeredTools;
      tools["refund"]?.update({ description });
      await until(async () => (await ls())[1]?.digest !== before?.digest, "the new digest");
      expect(JSON.parse((await run("get", "billing/refund", "--raw")).stdout)).toMatchObject({ description });
      await registration.close();
      expect(await ls()).toEqual([]);
    },
    60_000,
  );
});

describe("a registry that lost everything", () => {
  it("hears from its servers again within a renewal", async () => {
    const port = await freePort();
    const first = await startRegistry({ store: "memory", port });
    const server = new McpServerV1({ name: "billing", version: "1" });
    server.registerTool("refund", { description: "Gives money back." }, () => ({ content: [] }));
    const registration = registerServer(server, {
      serverId: "billing",
      registry: first.grpc,
      ttlMs: 10_000,
      deregisterOnExit: false,
    });
    onTestFinished(() => registration.close());
    const lease = await until(() => registration.leaseId, "a lease");
    await first.kill();
    const second = await startRegistry({ store: "memory", port });
    await until(() => registration.leaseId !== undefined && registration.leaseId !== lease, "another lease", 20_000);
    expect((await at(second.grpc).ls()).map((stub) => stub.toolId)).toEqual(["billing/refund"]);
  }, 60_000);
});

describe("watch", () => {
  const event = (n: number) => ({ type: 1, toolId: `s/t${n}`, serverId: "s" });

  it("resumes with its token, prints a change whole or not at all, and relists when told", async () => {
    const registry = await SmallRegistry.start();
    onTestFinished(() => registry.stop());
    const script: (typeof registry.onWatch)[] = [
      (_request, send, fail) => {
        send({ message: { case: "snapshot", value: { last: true, resumeToken: "t1" } } });
        send({ message: { case: "change", value: { events: [event(1)], resumeToken: "t2", revision: "2" } } });
        send({ message: { case: "change", value: { events: [event(2)], resumeToken: "", revision: "3" } } });
        fail(new Failure("DRAINING", "this replica is stopping"));
      },
      (_request, send, fail) => {
        send({ message: { case: "change", value: { events: [event(2)], resumeToken: "", revision: "3" } } });
        send({ message: { case: "change", value: { events: [event(3)], resumeToken: "t3", revision: "3" } } });
        fail(new Failure("WATCHER_TOO_SLOW", "too slow", { metadata: { resume_token: "t4" } }));
      },
      (_request, _send, fail) => fail(new Failure("RELIST_REQUIRED", "gone", { metadata: { cause: "compacted" } })),
      (_request, send) => send({ message: { case: "snapshot", value: { last: true, resumeToken: "t9" } } }),
    ];
    registry.onWatch = (...call) => script.shift()?.(...call);
    const run = toolcrib(["watch", "--registry", registry.address]);
    await until(
      () => registry.watches.length === 4 && run.stderr().split("watching 0 tools").length === 3,
      `the relist: ${run.stderr()}`,
    );
    // After what was read, never after what the registry believes to have sent.
    expect(registry.watches.map((request) => request.resumeToken)).toEqual(["", "t2", "t3", ""]);
    expect(run.stdout().match(/s\/t\d/g)).toEqual(["s/t1", "s/t2", "s/t3"]);
    expect(run.stderr()).toContain("changes were missed");
    run.process.kill("SIGTERM");
    expect(await run.exit).toEqual([0, null]);
  });

  it("ends with a sentence when the registry was never there", async () => {
    const run = await toolcribDone(["watch", "--registry", `127.0.0.1:${await freePort()}`]);
    expect(run.code).toBe(1);
    expect(run.stderr).toContain("cannot be reached");
  });
});
