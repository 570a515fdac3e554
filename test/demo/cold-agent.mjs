/**
 * An agent that starts, in one of several ways, and says how long it took from its first line after the imports until it was ready.
 *
 *   node cold-agent.mjs WAY '{"root", "registry", "namespace", "gateway", "urls": […], "files": […], "intent"}'
 */
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const [way, given] = process.argv.slice(2);
const { root, registry, namespace, gateway, urls, files, intent } = JSON.parse(given);
const { connect } = await import(`${root}/dist/client/index.js`);

const http = (url) => new StreamableHTTPClientTransport(new URL(url));
const stdio = (file) => new StdioClientTransport({ command: process.execPath, args: [`${root}/test/demo/listing-server.mjs`, file, "--stdio"] });

/** `initialize`, `notifications/initialized`, `tools/list`. */
async function listed(transport) {
  const client = new Client({ name: "cold-agent", version: "1.0.0" });
  await client.connect(transport);
  const { tools } = await client.listTools();
  return { tools: tools.length, close: () => client.close() };
}

async function sequentially() {
  const all = [];
  for (const url of urls) all.push(await listed(http(url)));
  return all;
}

async function found() {
  const agent = connect({ targets: registry, namespace });
  const [map, { tools }] = await Promise.all([agent.moduleMap({ tokens: 400 }), agent.find(intent)]);
  if (tools.length === 0) throw new Error("nothing was found");
  return { agent, tools, ready: { tools: map.tools, close: () => agent.close() } };
}

function summed(all) {
  return { tools: all.reduce((sum, { tools }) => sum + tools, 0), close: () => Promise.all(all.map(({ close }) => close())) };
}

const WAYS = {
  "eager, one after the other": async () => summed(await sequentially()),
  "eager, all at once": async () => summed(await Promise.all(urls.map((url) => listed(http(url))))),
  "eager, over stdio": async () => summed(await Promise.all(files.map((file) => listed(stdio(file))))),
  "lazy, follower live": async () => {
    const agent = connect({ targets: registry, namespace });
    const state = await agent.follow();
    if (state.kind !== "live") await new Promise((resolve) => agent.follower.on("state", ({ kind }) => kind === "live" && resolve()));
    return { tools: agent.follower.stubs().length, close: () => agent.close() };
  },
  "lazy, map + first find": async () => (await found()).ready,
  "lazy, with definitions": async () => {
    const { agent, tools, ready } = await found();
    const { tools: loaded } = await agent.load(tools.map(({ toolId }) => toolId), { deadlineMs: 5_000 });
    if (loaded.length === 0) throw new Error("nothing was loaded");
    return ready;
  },
  "lazy, over the gateway": async () => {
    const client = new Client({ name: "cold-agent", version: "1.0.0" });
    await client.connect(http(gateway));
    await client.listTools();
    await client.callTool({ name: "find_tools", arguments: { intent, limit: 5 } });
    const { tools } = await client.listTools();
    if (tools.length < 2) throw new Error("nothing was loaded");
    return { tools: tools.length, close: () => client.close() };
  },
};

const began = performance.now();
const { tools, close } = await WAYS[way]();
const ms = performance.now() - began;
console.log(JSON.stringify({ ms, tools }));
await close();
process.exit(0);
