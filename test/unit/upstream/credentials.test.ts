/** Which credential is shown to whom: the file as it is read, and the requests as they arrive. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Logger } from "../../../src/catalogue/ports.js";
import type { CredentialUse } from "../../../src/catalogue/upstream-port.js";
import { type Credentials, credentialsOf, watchCredentials } from "../../../src/upstream/credentials/credentials.js";
import { readCredentials } from "../../../src/upstream/credentials/file.js";
import { startDns } from "../../support/dns.js";
import { startGuarded } from "../../support/guarded-server.js";
import { eventually, failureOf, silentLogger, soon, startUpstream } from "../../support/upstream.js";

const SECRET = "planted/5e2c7a+91";
const ENV = { THE_TOKEN: SECRET, SHORT: "1234567", STRANGE: "line\nbreak-in-it" };
const USE: CredentialUse = { name: "vault", namespace: "default", sharePrivate: false };
const entry = (more: object = {}): object => ({
  name: "vault",
  namespaces: ["default"],
  header: "Authorization",
  prefix: "Bearer ",
  value: { env: "THE_TOKEN" },
  hosts: ["127.0.0.1", "mcp.test", "*.inside.test"],
  ...more,
});

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "toolcrib-credentials-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

function problems(...entries: object[]): readonly string[] {
  const read = readCredentials(Buffer.from(JSON.stringify({ credentials: entries })), ENV, "/nowhere");
  return read.ok ? [] : read.problems;
}

function open(entries: readonly object[], log: Logger = silentLogger): { path: string; credentials: Credentials } {
  const path = join(folder(), "credentials.json");
  writeFileSync(path, JSON.stringify({ credentials: entries }));
  const credentials = watchCredentials(path, ENV, log);
  onTestFinished(() => credentials.close());
  return { path, credentials };
}

describe("the file", () => {
  it.each([
    [{ name: "Vault" }, /\[0\]\.name must be \[a-z0-9\]/],
    [{ namespaces: [] }, /\[0\]\.namespaces must be a list of 1/],
    [{ namespaces: ["NO"] }, /\[0\]\.namespaces must hold namespaces/],
    [{ header: "Bad Header" }, /\[0\]\.header must be/],
    [{ header: "Host" }, /\[0\]\.header must be/],
    [{ header: "Mcp-Session-Id" }, /\[0\]\.header must be/],
    [{ header: "Content-Length" }, /\[0\]\.header must be/],
    [{ prefix: "Bearer\r\nX: " }, /\[0\]\.prefix must be/],
    [{ value: SECRET }, /values do not stand in this file/],
    [{ value: { env: "THE_TOKEN", file: "x" } }, /\[0\]\.value must be/],
    [{ value: { env: "ABSENT" } }, /the variable ABSENT is not set/],
    [{ value: { env: "SHORT" } }, /the variable SHORT has 7 characters/],
    [{ value: { env: "STRANGE" } }, /the variable STRANGE holds characters other than/],
    [{ value: { file: "absent" } }, /the file \/nowhere\/absent cannot be read \(ENOENT\)/],
    [{ hosts: [] }, /\[0\]\.hosts must be a list/],
    [{ hosts: ["*"] }, /\[0\]\.hosts must hold/],
    [{ hosts: ["https://mcp.test"] }, /\[0\]\.hosts must hold/],
    [{ hosts: ["mcp.test:443"] }, /\[0\]\.hosts must hold/],
    [{ hosts: ["[::1]:443"] }, /\[0\]\.hosts must hold/],
    [{ hosts: ["mcp.test/x"] }, /\[0\]\.hosts must hold/],
    [{ hosts: ["me@mcp.test"] }, /\[0\]\.hosts must hold/],
    [{ hosts: ["*.127.0.0.1"] }, /\[0\]\.hosts must hold/],
    [{ secret: SECRET }, /\[0\] has 1 members that are none of/],
  ])("with %j is refused", (more, says) => {
    const found = problems(entry(more));
    expect(found).toHaveLength(1);
    expect(found[0]).toMatch(says);
    expect(found.join()).not.toContain(SECRET);
  });

  it("tells everything at once, and a name that comes twice", () => {
    expect(problems(entry(), entry(), entry({ name: "b", header: "" }), entry({ name: "c", hosts: ["a b"] }))).toHaveLength(3);
    expect(problems(entry(), entry({ name: "other", namespaces: ["*"], hosts: ["::1", "[::1]", "example.com"] }))).toEqual([]);
  });

  it("is read again when it changes; a broken one is told of once, without values, and changes nothing", async () => {
    const lines: string[] = [];
    const log: Logger = { ...silentLogger, error: (fields: object, message: string) => void lines.push(JSON.stringify(fields) + message) } as Logger;
    const { path, credentials } = open([entry()], log);
    const refusal = () => credentials.refusal("http://127.0.0.1:1/mcp", USE);
    expect(refusal()).toBeUndefined();
    writeFileSync(path, JSON.stringify({ credentials: [entry({ value: SECRET, hosts: [] })] }));
    await eventually(() => lines.length, (count) => count === 1);
    expect(lines[0]).toMatch(/hosts must be a list.*values do not stand in this file.*what was read before stays in force/);
    expect(lines[0]).not.toContain(SECRET);
    expect(refusal()).toBeUndefined();
    writeFileSync(path, JSON.stringify({ credentials: [] }));
    await eventually(refusal, (text) => text !== undefined);
  });
});

describe("a credential may be shown", () => {
  const read = readCredentials(
    Buffer.from(JSON.stringify({ credentials: [entry({ hosts: ["127.0.0.1", "mcp.test", "*.inside.test", "::1", "8.8.8.8"] })] })),
    ENV,
    "/nowhere",
  );
  const credentials = credentialsOf({ value: read.ok ? read.value : new Map(), close: () => undefined });

  it.each([
    "https://mcp.test/mcp",
    "https://MCP.test./mcp",
    "https://a.inside.test:8443/",
    "https://a.b.inside.test/",
    "http://127.0.0.1:3001/mcp",
    "http://[::1]:3001/mcp",
    "https://8.8.8.8/mcp",
  ])("to %s", (url) => {
    expect(credentials.refusal(url, USE)).toBeUndefined();
  });

  it.each([
    ["https://mcp.test.evil.test/mcp", "none of them"],
    ["https://evilmcp.test/mcp", "none of them"],
    ["https://inside.test/mcp", "none of them"],
    ["https://evilinside.test/mcp", "none of them"],
    ["https://evil.test/mcp.test", "none of them"],
    ["http://127.0.0.2/mcp", "none of them"],
    ["http://8.8.8.8/mcp", "is a public address: let the server speak https"],
  ])("not to %s", (url, says) => {
    expect(credentials.refusal(url, USE)).toContain(says);
  });

  it("to its own namespaces alone; others read the same as of one that is not there", () => {
    const foreign = credentials.refusal("https://mcp.test/mcp", { ...USE, namespace: "other" });
    expect(foreign).toContain("there is no upstream credential vault for namespace other");
    const absent = credentials.refusal("https://mcp.test/mcp", { ...USE, name: "absent", namespace: "other" });
    expect(absent).toBe(foreign?.replace("vault", "absent"));
  });
});

describe("requests with a credential", () => {
  it("carry it all, from discovery to the stream of notices, and those without carry none", async () => {
    const server = await startGuarded(`Bearer ${SECRET}`);
    const upstream = startUpstream(undefined, { credentials: open([entry()]).credentials });
    expect((await upstream.list(server.url, soon(), USE)).tools.map((t) => t.name)).toEqual(["guarded_tool"]);
    const leaving = new AbortController();
    let heard = 0;
    const ended = upstream.subscribe(server.url, () => heard++, leaving.signal, USE);
    await eventually(() => server.seen.some((s) => s.method === "subscriptions/listen"), (is) => is);
    await eventually(() => (server.notify(), heard), (count) => count > 0);
    leaving.abort();
    await ended;
    expect(server.seen.map((s) => s.headers.authorization)).toEqual(server.seen.map(() => `Bearer ${SECRET}`));

    // The connection that the credential opened is nobody else's.
    const from = server.seen.length;
    const error = await failureOf(upstream.list(server.url, soon()));
    expect(error).toMatchObject({ kind: "auth" });
    expect(error.message).toContain("name a credential in Register");
    expect(server.seen.slice(from).map((s) => [s.method, s.headers.authorization])).toEqual([["server/discover", undefined]]);
  });

  it("show the value that its file has now", async () => {
    const path = join(folder(), "value");
    writeFileSync(path, "first-value\n");
    const server = await startGuarded("Bearer first-value");
    const upstream = startUpstream(undefined, { credentials: open([entry({ value: { file: path } })]).credentials });
    await upstream.list(server.url, soon(), USE);
    writeFileSync(path, "second-value\r\n");
    server.wants = "Bearer second-value";
    await upstream.list(server.url, soon(), USE);
    rmSync(path);
    expect(await failureOf(upstream.list(server.url, soon(), USE))).toMatchObject({
      kind: "credential",
      message: "the file of the upstream credential vault cannot be read (ENOENT)",
    });
  });

  it("are not made where a redirect points", async () => {
    const server = await startGuarded(`Bearer ${SECRET}`);
    const other = await startGuarded("");
    Object.assign(server, { manner: "redirects", elsewhere: other.url });
    const upstream = startUpstream(undefined, { credentials: open([entry()]).credentials });
    expect((await failureOf(upstream.list(server.url, soon(), USE))).message).toContain("redirects are not followed");
    expect(other.seen).toEqual([]);
  });

  it("in plain text go to no name that leads outside, also not over a connection that is open already", async () => {
    const server = await startGuarded("");
    // A public address by its class, which this machine's DNS alone could lead elsewhere: nothing may be sent.
    const dns = await startDns({ "mcp.test": ["127.0.0.1", "8.8.8.8"] });
    const upstream = startUpstream(undefined, { credentials: open([entry()]).credentials, resolve: dns.resolve });
    const url = `http://mcp.test:${server.port}/mcp`;
    await upstream.list(url, soon());
    const from = server.seen.length;
    const error = await failureOf(upstream.list(url, soon(), USE));
    expect(error.kind).toBe("credential");
    expect(error.message).toContain("mcp.test resolves to a public address: let the server speak https");
    expect(server.seen).toHaveLength(from);
  });

  it.each(["private", "public", undefined])("a list marked %s", async (scope) => {
    const server = await startGuarded(`Bearer ${SECRET}`);
    server.cacheScope = scope;
    const upstream = startUpstream(undefined, { credentials: open([entry()]).credentials });
    if (scope === "private") {
      const error = await failureOf(upstream.list(server.url, soon(), USE));
      expect(error).toMatchObject({ kind: "private-list" });
      expect(error.message).toContain("set share_private in Register");
    }
    expect((await upstream.list(server.url, soon(), { ...USE, sharePrivate: true })).tools).toHaveLength(1);
  });

  it("a server that repeats the credential is not listened to", async () => {
    const server = await startGuarded(`Bearer ${SECRET}`);
    server.manner = "repeats the credential";
    const upstream = startUpstream(undefined, { credentials: open([entry()]).credentials });
    const error = await failureOf(upstream.list(server.url, soon(), USE));
    expect(error.message).toContain("repeats the credential in its answer");
    expect(JSON.stringify([error.message, String(error.cause)])).not.toContain(SECRET);
  });
});
