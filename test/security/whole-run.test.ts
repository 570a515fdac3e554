/** One whole run with secrets of every kind planted in it; afterwards all that left the registry, and all it stored, is searched. */
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { failing, readError } from "../integration/grpc-support.js";
import { toolcribDone } from "../support/cli.js";
import { type GuardedServer, startGuarded } from "../support/guarded-server.js";
import { AUDIENCE, bearer, entryOf, ISSUER, Issuer, newToken, writeTokens } from "../support/identity.js";
import { startRedis, type TestRedis } from "../support/redis.js";
import { RemoteRegistry, type RegistryProcess, startRegistry, temporaryFolder } from "../support/registry.js";
import { eventually } from "../support/upstream.js";
import { HttpWatch } from "./identity-support.js";

const planted = (): string => `planted-${randomBytes(12).toString("hex")}`;

interface Run {
  readonly registry: RegistryProcess;
  readonly redis: TestRedis;
  readonly remote: RemoteRegistry;
  readonly server: GuardedServer;
  readonly secrets: Readonly<Record<"token" | "unknown" | "jwt" | "broken" | "credential" | "filed" | "password", string>>;
  /** All that callers were told, and all that their commands printed. */
  readonly heard: unknown[];
}

async function start(): Promise<Run> {
  const issuer = await Issuer.create();
  const jwt = await issuer.sign({ toolcrib: [{ role: "operator", namespaces: ["default"] }] });
  const [credential, filed, password] = [planted(), planted(), planted()];
  const secrets = { token: newToken(), unknown: newToken(), jwt, broken: `${jwt.slice(0, -4)}AAAA`, credential, filed, password };
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  // Values are to be found in DUMP as they are.
  await redis.admin.config("SET", "rdbcompression", "no");
  await redis.admin.call("ACL", "SETUSER", "toolcrib", "on", `>${password}`, "~*", "&*", "+@all");

  const folder = await temporaryFolder();
  const at = (name: string): string => join(folder, name);
  writeTokens(at("tokens.json"), [entryOf(secrets.token, "ci", [{ role: "operator", namespaces: ["*"] }])]);
  writeFileSync(at("jwks.json"), JSON.stringify(issuer.jwks));
  writeFileSync(at("filed.secret"), `${filed}\n`);
  const base = { namespaces: ["default"], header: "Authorization", prefix: "Bearer ", hosts: ["127.0.0.1"] };
  const credentials = [
    { ...base, name: "vault", value: { env: "VAULT_TOKEN" } },
    { ...base, name: "filed", value: { file: "filed.secret" } },
  ];
  writeFileSync(at("credentials.json"), JSON.stringify({ credentials }));
  const registry = await startRegistry({
    store: `redis://toolcrib:${password}@127.0.0.1:${redis.port}`,
    args: [
      ...["--log-level", "debug", "--tokens-file", at("tokens.json"), "--upstream-credentials", at("credentials.json")],
      ...["--jwt-jwks", at("jwks.json"), "--jwt-issuer", ISSUER, "--jwt-audience", AUDIENCE],
    ],
    env: { VAULT_TOKEN: credential },
  });
  const server = await startGuarded(`Bearer ${credential}`);
  return { registry, redis, remote: new RemoteRegistry(registry.grpc), server, secrets, heard: [] };
}

/** Every way in, with good credentials and bad ones, over both listeners and by the commands. */
async function useEverything({ registry, remote, server, secrets, heard }: Run): Promise<void> {
  const register = (serverId: string, credential: string, endpoint = server.url) => ({
    serverId,
    instanceId: "instance-1",
    endpoint,
    introspect: {},
    credential,
    // Nobody renews, and a whole run takes as long as it takes.
    leaseTtl: { seconds: 3_600 },
  });
  const call = async (method: string, request: object, token: string) =>
    void heard.push(await remote.call(method, request, 15_000, bearer(token)));
  const refused = async (method: string, request: object, token: string) =>
    void heard.push(await failing(remote.call(method, request, 15_000, bearer(token))));
  const post = async (method: string, request: object, token: string): Promise<void> => {
    const headers = { "content-type": "application/json", authorization: `Bearer ${token}` };
    const answer = await fetch(`${registry.http}/toolcrib.v1.RegistryService/${method}`, { method: "POST", headers, body: JSON.stringify(request) });
    heard.push([...answer.headers], await answer.text());
  };
  for (const token of [secrets.unknown, secrets.broken]) {
    await refused("getStubs", {}, token);
    await post("GetStubs", {}, token);
    const watch = remote.watch({}, bearer(token));
    heard.push(readError(await eventually(() => watch.error as never, (error) => error !== undefined)));
    heard.push(await new HttpWatch(registry.http, {}, token).ended);
  }
  await call("register", register("guarded", "vault"), secrets.token);
  await call("register", register("other", "filed"), secrets.jwt);
  await refused("register", register("far", "vault", "http://127.0.0.2:9/mcp"), secrets.token);
  await refused("register", register("inline", "", `http://me:${secrets.credential}@127.0.0.1:9/mcp`), secrets.jwt);
  await post("GetServer", { serverId: "guarded" }, secrets.jwt);
  await post("GetFullSchema", { toolId: "guarded/guarded_tool" }, secrets.token);
  for (const manner of ["repeats the credential", "redirects", "well"] as const) {
    server.manner = manner;
    server.elsewhere = `http://127.0.0.1:9/${secrets.credential}`;
    await call("register", register(`manner-${manner.slice(0, 4)}`, "vault"), secrets.token);
  }
  for (const command of [["ls"], ["servers"], ["get", "guarded/guarded_tool"], ["doctor", "--ops", registry.ops], ["top", "--once", "--ops", registry.ops]]) {
    for (const token of [secrets.token, secrets.unknown])
      heard.push(await toolcribDone([...command, "--registry", registry.grpc], { TOOLCRIB_TOKEN: token }));
  }
}

/** Keys and values as they lie there. */
async function storedIn({ admin }: TestRedis): Promise<Buffer> {
  const parts: Buffer[] = [];
  for (const key of await admin.keys("*")) parts.push(Buffer.from(key), (await admin.dumpBuffer(key)) ?? Buffer.alloc(0));
  return Buffer.concat(parts);
}

describe.skipIf(inject("redisServer") === "")("planted secrets", () => {
  it("are in no log, metric, answer, error, event or record after a whole run", { timeout: 120_000 }, async () => {
    const run = await start();
    const { registry, redis, remote, secrets, heard } = run;
    const watches = [remote.watch({}, bearer(secrets.token)), remote.watch({}, bearer(secrets.jwt))];
    const overHttp = new HttpWatch(registry.http, {}, secrets.jwt);
    for (const watch of [...watches, overHttp]) await watch.ready();
    await useEverything(run);
    await eventually(() => overHttp.heard.join(), (text) => text.includes("guarded/guarded_tool"));
    await eventually(() => watches.every(({ told }) => told.includes("REGISTERED guarded/guarded_tool")), (all) => all);
    const { servers } = await remote.call("listServers", {}, 15_000, bearer(secrets.token));
    expect(servers.length).toBeGreaterThanOrEqual(5);
    expect(run.server.seen.some(({ headers }) => headers.authorization === `Bearer ${secrets.credential}`)).toBe(true);
    expect(run.server.seen.some(({ headers }) => headers.authorization === `Bearer ${secrets.filed}`)).toBe(true);
    const stored = await storedIn(redis);
    expect(stored.includes("guarded_tool")).toBe(true);

    const ops = async (): Promise<string[]> =>
      Promise.all(["/metrics", "/readyz", "/livez"].map(async (path) => (await fetch(registry.ops + path)).text()));
    const before = await ops();
    // The store goes, and comes back with another password: what the registry says of it names none.
    const from = registry.output().length;
    await redis.restart();
    await eventually(() => registry.output().slice(from), (text) => /WRONGPASS|NOAUTH|password|user/i.test(text));
    const after = await ops();
    const told = watches.map(({ stubs, events, error }) => ({ stubs, events, error: String(error) }));
    await registry.stop();
    const written = [registry.output(), ...before, ...after, JSON.stringify([heard, told, overHttp.heard, servers])].join("\n");
    for (const [what, secret] of Object.entries(secrets)) {
      expect(written.includes(secret), `${what} in what was written`).toBe(false);
      expect(stored.includes(secret), `${what} in the store`).toBe(false);
    }
  });
});
