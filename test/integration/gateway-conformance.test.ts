/**
 * The official conformance suite against a gateway. Its report is kept as `test/fixtures/gateway-conformance.json`;
 * `KEEP_REPORT=1` writes it anew.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { testGateway } from "../support/gateway.js";
import { RemoteRegistry, startRegistry, temporaryFolder } from "../support/registry.js";
import { startFixture } from "../support/servers.js";
import { eventually } from "../support/upstream.js";

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const REPORT = at("../fixtures/gateway-conformance.json");
const SUITE = at("../../node_modules/@modelcontextprotocol/conformance/dist/index.js");
const HOOKS = at("../support/conformance/register.mjs");

/** Scenarios that ask for what a gateway of tools does not have, each with its reason. */
const CANNOT_APPLY: Readonly<Record<string, string>> = {
  "completion-complete": "the gateway offers tools only: no prompts or resources whose arguments could be completed",
  "server-sse-polling": "it needs a tool that ends its own stream, and an answer here is kept for no second stream",
  "tools-call-sampling": "servers behind a gateway cannot ask its clients back in the session eras",
  "tools-call-elicitation": "servers behind a gateway cannot ask its clients back in the session eras",
  "elicitation-sep1034-defaults": "servers behind a gateway cannot ask its clients back in the session eras",
  "elicitation-sep1330-enums": "servers behind a gateway cannot ask its clients back in the session eras",
  "json-schema-2020-12": "it looks for a tool by its bare name, and tools are listed here as server__tool; gateway-definitions.test.ts compares schemas",
  "resources-list": "the gateway offers tools only",
  "resources-read-text": "the gateway offers tools only",
  "resources-read-binary": "the gateway offers tools only",
  "resources-templates-read": "the gateway offers tools only",
  "resources-subscribe": "the gateway offers tools only",
  "resources-unsubscribe": "the gateway offers tools only",
  "prompts-list": "the gateway offers tools only",
  "prompts-get-simple": "the gateway offers tools only",
  "prompts-get-with-args": "the gateway offers tools only",
  "prompts-get-embedded-resource": "the gateway offers tools only",
  "prompts-get-with-image": "the gateway offers tools only",
};

interface Check {
  readonly id: string;
  readonly status: string;
  readonly errorMessage?: string;
}

it("passes every scenario that can apply to a gateway of tools", { timeout: 180_000 }, async () => {
  const registry = await startRegistry({ store: "memory" });
  const remote = new RemoteRegistry(registry.grpc);
  const server = await startFixture("conformance-server.mjs");
  await remote.call("register", { serverId: "suite", endpoint: server.url, transport: "TRANSPORT_STREAMABLE_HTTP", standing: true, introspect: {} });
  const always = await eventually(() => remote.toolIds(), (ids) => ids.length === 8);
  const gateway = await testGateway(registry.grpc, { always });
  const output = await temporaryFolder();
  const url = gateway.url.replace("127.0.0.1", "localhost");
  const run = spawn(process.execPath, ["--import", HOOKS, SUITE, "server", "--url", url, "--suite", "all", "--output-dir", output], { stdio: "ignore" });
  await once(run, "exit");

  const scenarios: Record<string, object> = {};
  for (const folder of (await readdir(output)).sort()) {
    const name = folder.replace(/^server-/, "").replace(/-\d{4}-\d{2}-\d{2}T.*$/, "");
    const checks = JSON.parse(await readFile(join(output, folder, "checks.json"), "utf8")) as Check[];
    const judged = checks.filter(({ status }) => status !== "INFO" && status !== "SKIPPED").map(({ id, status }) => ({ id, status }));
    scenarios[name] = CANNOT_APPLY[name] === undefined ? { checks: judged } : { cannotApply: CANNOT_APPLY[name] };
  }
  const suite = JSON.parse(await readFile(join(SUITE, "../../package.json"), "utf8")) as { version: string };
  const report = { suite: `@modelcontextprotocol/conformance ${suite.version}`, scenarios };
  if (process.env["KEEP_REPORT"] === "1") await writeFile(REPORT, `${JSON.stringify(report, null, 2)}\n`);

  const failed = Object.entries(scenarios).filter(([, s]) => JSON.stringify(s).includes('"FAILURE"'));
  expect(failed).toEqual([]);
  expect(Object.keys(scenarios).length).toBeGreaterThan(25);
  expect(report).toEqual(JSON.parse(await readFile(REPORT, "utf8")));
});
