/** Credentials for MCP servers: who may name them, to whom they are shown, and that nobody ever reads their values. */
import { writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Metadata } from "@grpc/grpc-js";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { failing } from "../integration/grpc-support.js";
import { toolcribDone } from "../support/cli.js";
import { type GuardedServer, startGuarded } from "../support/guarded-server.js";
import { entryOf, newToken, writeTokens } from "../support/identity.js";
import { RemoteRegistry, type RegistryProcess, startRegistry, temporaryFolder } from "../support/registry.js";
import { type Fixture, startFixture } from "../support/servers.js";
import { eventually } from "../support/upstream.js";

const SECRET = "planted/8d1f+47aa0c";
const HEADER = `Bearer ${SECRET}`;
const FILE_SECRET = "planted-file-6b0e11";
const base = { header: "Authorization", prefix: "Bearer ", hosts: ["127.0.0.1"] };
const CREDENTIALS = [
  { ...base, name: "vault", namespaces: ["default"], value: { env: "VAULT_TOKEN" } },
  { ...base, name: "filed", namespaces: ["*"], value: { file: "filed.secret" } },
  { ...base, name: "theirs", namespaces: ["other"], value: { env: "VAULT_TOKEN" } },
  { ...base, name: "far", namespaces: ["default"], value: { env: "VAULT_TOKEN" }, hosts: ["mcp.example.com"] },
];

let registry: RegistryProcess;
let remote: RemoteRegistry;
let credentialsFile: string;
/** Everything that the registry answered in this file. */
const answers: unknown[] = [];

beforeAll(async () => {
  const folder = await mkdtemp(join(tmpdir(), "toolcrib-credentials-"));
  credentialsFile = join(folder, "credentials.json");
  writeFileSync(join(folder, "filed.secret"), `${FILE_SECRET}\n`);
  writeFileSync(credentialsFile, JSON.stringify({ credentials: CREDENTIALS }));
  const args = ["--log-level", "debug", "--upstream-credentials", credentialsFile];
  registry = await startRegistry({ keep: true, dataDir: folder, args, env: { VAULT_TOKEN: SECRET } });
  remote = new RemoteRegistry(registry.grpc, true);
});
afterAll(async () => {
  remote.client.close();
  await registry.kill();
  await rm(registry.dataDir, { recursive: true, force: true });
});
afterEach(async () => {
  const metrics = await (await fetch(`${registry.ops}/metrics`)).text();
  const whole = [registry.output(), metrics, JSON.stringify(answers), JSON.stringify(await remote.call("listServers"))].join("\n");
  for (const secret of [SECRET, SECRET.replace("/", "\\/"), FILE_SECRET]) expect(whole).not.toContain(secret);
});

const request = (server: GuardedServer | string, more: object = {}): object => ({
  serverId: "guarded",
  instanceId: "instance-1",
  endpoint: typeof server === "string" ? server : server.url,
  introspect: {},
  ...more,
});

async function register(server: GuardedServer | string, more: object = {}): Promise<{ pending: boolean }> {
  const answer = await remote.call("register", request(server, more));
  answers.push(answer);
  return answer;
}

async function conditions(): Promise<Record<string, { status: string; reason: string; message: string }>> {
  const { server } = await remote.call("getServer", { serverId: "guarded" });
  answers.push(server);
  return Object.fromEntries(server.conditions.map((c: { type: string }) => [c.type === "CONDITION_TYPE_LISTED" ? "Listed" : "Reachable", c]));
}

async function refusal(more: object): Promise<{ message: string }> {
  const before = await remote.call("getStubs");
  const error = await failing(remote.call("register", request("https://127.0.0.1:3001/mcp", more)));
  answers.push(error);
  expect(error).toMatchObject({ code: "FAILED_PRECONDITION", reason: "UNKNOWN_CREDENTIAL", metadata: { server_id: "guarded" } });
  expect(await remote.call("getStubs")).toEqual(before);
  return error;
}

afterEach(() => remote.call("deregister", { serverId: "guarded" }));

describe("naming a credential", () => {
  it("lists what the server shows to whom it knows, and shows the name alone", async () => {
    const server = await startGuarded(HEADER);
    expect((await register(server, { credential: "vault" })).pending).toBe(false);
    const { server: known } = await remote.call("getServer", { serverId: "guarded" });
    expect(known).toMatchObject({ toolCount: 1, instances: [{ credential: "vault" }] });
    expect(server.seen.length).toBeGreaterThan(0);
    for (const { headers } of server.seen) expect(headers.authorization).toBe(HEADER);
    const { schema } = await remote.call("getFullSchema", { toolId: "guarded/guarded_tool" });
    expect(String(schema.definition)).toContain("Behind the door");

    // The keeper follows its notices with the same credential.
    await eventually(() => server.seen.some((s) => s.method === "subscriptions/listen"), (is) => is);
    const lists = () => server.seen.filter((s) => s.method === "tools/list").length;
    const before = lists();
    await eventually(() => (server.notify(), lists()), (count) => count > before);
    for (const { headers } of server.seen) expect(headers.authorization).toBe(HEADER);
  });

  it("whose value is in a file", async () => {
    const server = await startGuarded(`Bearer ${FILE_SECRET}`);
    expect((await register(server, { credential: "filed" })).pending).toBe(false);
  });

  it("loads definitions of a declared server with it", async () => {
    const server = await startGuarded(HEADER);
    const declared = { introspect: undefined, declared: { tools: [{ stub: { name: "guarded_tool" } }] }, credential: "vault" };
    await register(server, declared);
    const { schema } = await remote.call("getFullSchema", { toolId: "guarded/guarded_tool" }, 10_000);
    expect(String(schema.definition)).toContain("Behind the door");
  });

  it("that is unknown, and one of another namespace, are refused with one text", async () => {
    const unknown = await refusal({ credential: "no-such" });
    const foreign = await refusal({ credential: "theirs" });
    expect(foreign.message).toBe(unknown.message.replace("no-such", "theirs"));
    expect(unknown.message).toContain("--upstream-credentials (TOOLCRIB_UPSTREAM_CREDENTIALS)");
  });

  it("for another host, in plain text outside, or with an impossible name", async () => {
    expect((await refusal({ credential: "far" })).message).toContain("may not be shown to 127.0.0.1");
    const openly = await refusal({ credential: "far", endpoint: "https://mcp.example.com.evil.test/mcp" });
    expect(openly.message).toContain("may not be shown to mcp.example.com.evil.test");
    const error = await failing(remote.call("register", request("https://127.0.0.1:3001/mcp", { credential: "No Such" })));
    expect(error).toMatchObject({ reason: "INVALID_REQUEST", violations: [{ field: "credential" }] });
  });
});

describe("a server that wants a credential", () => {
  it.each([401, 403])("and answers %i has a condition that says what to do", async (status) => {
    const server = await startGuarded(HEADER);
    server.refuses = status;
    expect((await register(server)).pending).toBe(true);
    const { Listed } = await conditions();
    expect(Listed).toMatchObject({ reason: "AUTH_REQUIRED" });
    expect(Listed?.message).toContain("name a credential");
  });

  it("and another one than it is shown repeats what it was shown: that is told without the value", async () => {
    const server = await startGuarded("Bearer something-else");
    expect((await register(server, { credential: "vault" })).pending).toBe(true);
    expect((await conditions())["Listed"]?.message).toContain("does not accept the credential vault");
  });

  it("and repeats it in its answers is not listened to", async () => {
    const server = await startGuarded(HEADER);
    server.manner = "repeats the credential";
    expect((await register(server, { credential: "vault" })).pending).toBe(true);
    expect((await conditions())["Listed"]?.message).toContain("repeats the credential in its answer");
  });

  it("and redirects shows nobody else", async () => {
    const server = await startGuarded(HEADER);
    const other = await startGuarded("");
    Object.assign(server, { manner: "redirects", elsewhere: other.url });
    await register(server, { credential: "vault" });
    expect((await conditions())["Listed"]?.message).toContain("redirects are not followed");
    expect(other.seen).toEqual([]);
  });
});

describe("a server of HTTP+SSE", () => {
  const seen = async (server: Fixture) => (await server.requests()).map(({ http, headers }) => [http, headers["authorization"]]);

  it.each(["TRANSPORT_HTTP_SSE", "TRANSPORT_UNSPECIFIED"])("is shown the credential with the stream and with every message (%s)", async (transport) => {
    const server = await startFixture("sse-server.mjs", ["--wants", HEADER]);
    expect((await register(server.url, { transport })).pending).toBe(true);
    expect((await conditions())["Listed"]).toMatchObject({ reason: "AUTH_REQUIRED" });
    const without = (await seen(server)).length;
    expect((await register(server.url, { transport, credential: "vault" })).pending).toBe(false);
    expect(await remote.toolIds()).toContain("guarded/greet");
    const shown = (await seen(server)).slice(without).filter(([, header]) => header !== undefined);
    expect(new Set(shown.map(([http]) => http))).toEqual(new Set(["GET", "POST"]));
    for (const [, header] of shown) expect(header).toBe(HEADER);
  });

  it("and repeats the credential on its stream is not listened to", async () => {
    const server = await startFixture("sse-server.mjs", ["--wants", HEADER, "--leak"]);
    expect((await register(server.url, { transport: "TRANSPORT_HTTP_SSE", credential: "vault" })).pending).toBe(true);
    expect((await conditions())["Listed"]?.message).toContain("repeats the credential in its answer");
  });

  it("and sends us elsewhere shows nobody else", async () => {
    const other = await startFixture("sse-server.mjs");
    const server = await startFixture("sse-server.mjs", ["--wants", HEADER, "--endpoint", new URL("/messages", other.url).href]);
    await register(server.url, { transport: "TRANSPORT_HTTP_SSE", credential: "vault" });
    expect((await conditions())["Listed"]?.message).toContain("posted to its own origin alone");
    expect(await other.requests()).toEqual([]);
  });
});

describe("a list that is private to the credential", () => {
  it("is refused until its registrant shares it, and gone when the sharing ends", async () => {
    const server = await startGuarded(HEADER);
    server.cacheScope = "private";
    expect((await register(server, { credential: "vault" })).pending).toBe(true);
    const { Listed, Reachable } = await conditions();
    expect(Listed).toMatchObject({ reason: "PRIVATE_LIST" });
    expect(Listed?.message).toContain("set share_private in Register (toolcrib register --share-private)");
    expect(Reachable?.status).toMatch(/TRUE/);
    expect(await remote.toolIds()).not.toContain("guarded/guarded_tool");

    await register(server, { credential: "vault", sharePrivate: true });
    expect(await remote.toolIds()).toContain("guarded/guarded_tool");

    await register(server, { credential: "vault" });
    expect(await remote.toolIds()).not.toContain("guarded/guarded_tool");
  });
});

it("the command line names a credential", async () => {
  const server = await startGuarded(HEADER);
  server.cacheScope = "private";
  const args = ["register", "--registry", registry.grpc, "--id", "guarded", "--url", server.url, "--credential"];
  const refused = await toolcribDone([...args, "no-such"]);
  expect(refused.code).not.toBe(0);
  expect(refused.stderr).toContain("there is no upstream credential no-such");
  const done = await toolcribDone([...args, "vault", "--share-private"]);
  expect(done).toMatchObject({ code: 0 });
  expect(done.stdout).toContain("1 tool listed");
  answers.push(refused, done);
});

it("a broken file is told of without values and changes nothing; a good one takes effect", async () => {
  const server = await startGuarded(HEADER);
  writeFileSync(credentialsFile, JSON.stringify({ credentials: [{ ...base, name: "vault", namespaces: ["default"], value: SECRET }] }));
  await eventually(() => registry.output().includes("the upstream credentials file cannot be used"), (is) => is);
  expect((await register(server, { credential: "vault" })).pending).toBe(false);
  writeFileSync(credentialsFile, JSON.stringify({ credentials: [{ ...CREDENTIALS[0], name: "renamed" }] }));
  await eventually(() => registry.output().includes("the upstream credentials file changed and is in force"), (is) => is);
  await refusal({ credential: "vault" });
  writeFileSync(credentialsFile, JSON.stringify({ credentials: CREDENTIALS }));
});

it("a tenant who guesses the name of another's credential learns nothing", async () => {
  const folder = await temporaryFolder();
  const token = newToken();
  const tokens = join(folder, "tokens.json");
  writeTokens(tokens, [entryOf(token, "tenant", [{ role: "registrant", namespaces: ["mine"] }])]);
  const credentials = join(folder, "credentials.json");
  writeFileSync(credentials, JSON.stringify({ credentials: [CREDENTIALS[2]] }));
  const guarded = await startRegistry({ args: ["--tokens-file", tokens, "--upstream-credentials", credentials], env: { VAULT_TOKEN: SECRET } });
  const metadata = new Metadata();
  metadata.set("authorization", `Bearer ${token}`);
  const mine = new RemoteRegistry(guarded.grpc);
  const texts = [];
  for (const credential of ["theirs", "absent"]) {
    const error = await failing(mine.call("register", request("https://127.0.0.1:3001/mcp", { namespace: "mine", credential }), 15_000, metadata));
    expect(error).toMatchObject({ reason: "UNKNOWN_CREDENTIAL" });
    texts.push(error.message.replace(credential, "X"));
  }
  expect(texts[0]).toBe(texts[1]);
  expect(guarded.output()).not.toContain(SECRET);
});
