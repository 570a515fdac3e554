/** Who is let in, what they may do, and that one tenant never sees another (P9): the real process, both listeners. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Client, credentials, type ServiceError } from "@grpc/grpc-js";
import { type ReadError, readError, SERVICE } from "../integration/grpc-support.js";
import { bearer, entryOf, newToken, seconds } from "../support/identity.js";
import type { RemoteWatch } from "../support/registry.js";
import { eventually } from "../support/upstream.js";
import { IdentityTarget, type Refused, server } from "./identity-support.js";

let target: IdentityTarget;
beforeAll(async () => {
  target = await IdentityTarget.start();
});
afterAll(() => target.stop());

const UNAUTHENTICATED = { code: "UNAUTHENTICATED", reason: "UNAUTHENTICATED" } as const;
const FORBIDDEN = { code: "PERMISSION_DENIED", reason: "FORBIDDEN" } as const;
const planted: string[] = [];
const plant = (token: string): string => {
  planted.push(token);
  return token;
};

describe("who is not known", () => {
  type Make = () => string | undefined | Promise<string>;
  const jwt = (...args: Parameters<IdentityTarget["issuer"]["sign"]>) => async () => `Bearer ${plant(await target.issuer.sign(...args))}`;
  const table: readonly (readonly [what: string, make: Make, says: RegExp])[] = [
    ["no credential", () => undefined, /no credential: send/],
    ["another scheme", () => "Basic cm9vdDpodW50ZXIy", /malformed/],
    ["no token", () => "Bearer", /malformed/],
    ["two tokens", () => `Bearer ${target.tokens.root}, Bearer ${target.tokens.root}`, /malformed/],
    ["an unknown token", () => `Bearer ${plant(newToken())}`, /not known/],
    ["an expired token", () => `Bearer ${target.tokens.expired}`, /expired/],
    ["an expired JWT", jwt({ exp: seconds(-31) }), /expired/],
    ["a JWT with alg none", () => `Bearer ${plant(target.issuer.unsigned())}`, /algorithm/],
    ["an HMAC under the public key", async () => `Bearer ${plant(await target.issuer.confused())}`, /algorithm/],
    ["a JWT for another audience", jwt({ aud: "billing" }), /audience/],
    ["a JWT of another issuer", jwt({ iss: "https://evil.example" }), /issuer/],
    ["a JWT with an unknown key", jwt({}, { kid: "ec-2" }), /key that this registry does not know/],
    ["a JWT that never ends", jwt({ exp: undefined }), /exp/],
    ["a JWT with a grant for what is no namespace", jwt({ toolcrib: [{ role: "reader", namespaces: ["A B"] }] }), /toolcrib/],
  ];
  it.each(table)("%s", async (_what, make, says) => {
    const authorization = await make();
    const expected: Refused = { ...UNAUTHENTICATED, says };
    await target.refuses("getStubs", { namespace: "a" }, authorization, expected);
    await target.refuses("register", server("alice-two", { namespace: "a" }), authorization, expected);
  });

  it("no RPC is open to callers without a credential; health and reflection are", async () => {
    const methods = ["register", "renew", "deregister", "getStubs", "getFullSchema", "batchGetFullSchemas", "listServers", "getServer"];
    for (const method of methods) await target.refuses(method, {}, undefined, { ...UNAUTHENTICATED, says: /no credential/ });
    const watch = target.remote.watch({ namespace: "a" });
    expect(await ended(watch)).toMatchObject(UNAUTHENTICATED);
    expect(await target.watchHttp({ namespace: "a" }, undefined).ended).toMatchObject(UNAUTHENTICATED);
    expect(await health(target.registry.grpc)).toBe(1);
  });

  it("a JWT with grants is let in on both listeners", async () => {
    const token = await target.issuer.sign({ toolcrib: [{ role: "reader", namespaces: ["a"] }] }, { alg: "RS256" });
    expect((await target.call("getStubs", { namespace: "a" }, token)).stubs).toHaveLength(2);
    const response = await target.post("getStubs", { namespace: "a" }, `Bearer ${token}`);
    expect(((await response.json()) as { stubs: unknown[] }).stubs).toHaveLength(2);
  });
});

describe("rights", () => {
  type Row = readonly [what: string, who: keyof IdentityTarget["tokens"], method: string, request: object, expected: Refused];
  const table: readonly Row[] = [
    ["a reader registers", "reader", "register", server("reader-one", { namespace: "a" }), { ...FORBIDDEN, says: /reader may not register server reader-one.*registrant/ }],
    ["a reader renews", "reader", "renew", { namespace: "a", leases: [] }, { ...FORBIDDEN, says: /reader may not renew servers in namespace a.*registrant/ }],
    ["a reader deregisters", "reader", "deregister", { namespace: "a", serverId: "bob-one" }, { ...FORBIDDEN, says: /reader may not deregister server bob-one.*registrant/ }],
    ["a registrant outside its pattern", "alice", "register", server("other", { namespace: "a" }), { ...FORBIDDEN, says: /covers this server_id/ }],
    ["a registrant removes outside its pattern", "alice", "deregister", { namespace: "a", serverId: "bob-one" }, { ...FORBIDDEN, says: /covers this server_id/ }],
    ["a registrant registers another's", "bob", "register", server("alice-one", { namespace: "a" }), { code: "ALREADY_EXISTS", reason: "NOT_OWNER", says: /^server alice-one was registered first by another principal/ }],
    ["a registrant deregisters another's", "bob", "deregister", { namespace: "a", serverId: "alice-one" }, { ...FORBIDDEN, says: /operator/ }],
    ["a registrant removes another's tool", "bob", "deregister", { namespace: "a", toolId: "alice-one/tool" }, { ...FORBIDDEN, says: /operator/ }],
    ["another tenant registers", "alice", "register", server("alice-two", { namespace: "b" }), { ...FORBIDDEN, says: /namespace b/ }],
    ["another tenant registers what is there", "alice", "register", server("shared", { namespace: "b" }), { ...FORBIDDEN, says: /namespace b/ }],
    ["another tenant deregisters", "operator", "deregister", { namespace: "b", serverId: "secret" }, { ...FORBIDDEN, says: /namespace b/ }],
    ["a registrant of nothing makes a namespace", "bob", "register", server("x", { namespace: "c" }), { ...FORBIDDEN, says: /namespace c/ }],
    ["a key in an endpoint's query", "bob", "register", server("bob-two", { namespace: "a", endpoint: "http://127.0.0.1:3999/mcp?api_key=hunter2marker" }), { code: "INVALID_ARGUMENT", reason: "INVALID_REQUEST", says: /^(?!.*hunter2marker).*endpoint/ }],
    ["the reserved namespace", "root", "register", server("x", { namespace: "unseen.toolcrib" }), { ...FORBIDDEN, says: /reserved/ }],
  ];
  it.each(table)("%s", async (_what, who, method, request, expected) => {
    await target.refuses(method, request, `Bearer ${target.tokens[who]}`, expected);
  });

  it("another's lease is neither renewed nor ended, whoever learned its id", async () => {
    const before = await target.state();
    for (const [who, namespace, lease] of [["bob", "a", "a/alice-one"], ["alice", "a", "b/secret"], ["operator", "a", "b/secret"]] as const) {
      const leaseId = target.leases[lease];
      const { results } = await target.call("renew", { namespace, leases: [{ leaseId }] }, target.tokens[who]);
      expect(results).toMatchObject([{ state: "STATE_UNKNOWN_LEASE" }]);
      expect(await target.call("deregister", { namespace, leaseId }, target.tokens[who])).toMatchObject({ removed: false, revision: "" });
    }
    expect(await target.state()).toEqual(before);
  });

  it("owners and operators may, and the owner is shown", async () => {
    await target.seed("alice", "a", "alice-three");
    const { server: shown } = await target.call("getServer", { namespace: "a", serverId: "alice-three" }, target.tokens.reader);
    expect(shown).toMatchObject({ owner: "alice" });
    const { results } = await target.call("renew", { namespace: "a", leases: [{ leaseId: target.leases["a/alice-three"] }] }, target.tokens.alice);
    expect(results).toMatchObject([{ state: "STATE_OK" }]);
    expect(await target.call("deregister", { namespace: "a", serverId: "alice-three" }, target.tokens.operator)).toMatchObject({ removed: true });
  });
});

describe("P9: another tenant's namespace reads as one that does not exist", () => {
  it("lists are empty, whatever tokens of its own tenant are brought along", async () => {
    const { tokens } = target;
    const page = await target.call("getStubs", { namespace: "b", pageSize: 1 }, tokens.tenantB);
    const servers = await target.call("listServers", { namespace: "b", pageSize: 1 }, tokens.tenantB);
    expect(page.nextPageToken).not.toBe("");
    for (const who of [tokens.alice, tokens.operator]) {
      for (const namespace of ["b", "never-was"]) {
        expect(await target.call("getStubs", { namespace }, who)).toMatchObject({ stubs: [], nextPageToken: "" });
        expect(await target.call("listServers", { namespace }, who)).toMatchObject({ servers: [], nextPageToken: "" });
        for (const method of ["getStubs", "listServers"]) {
          const answer = (await (await target.post(method, { namespace }, `Bearer ${who}`)).json()) as Record<string, unknown>;
          expect(answer, method).toMatchObject({ revision: expect.any(String) });
          for (const list of ["stubs", "servers"]) expect(answer[list] ?? []).toEqual([]);
        }
        expect(await target.call("listServers", { namespace, pageToken: servers.nextPageToken }, who)).toMatchObject({ servers: [] });
        await target.refuses("getStubs", { namespace, pageSize: 1, pageToken: page.nextPageToken }, `Bearer ${who}`, { code: "INVALID_ARGUMENT", reason: "INVALID_PAGE_TOKEN", says: /another filter/ });
      }
      await target.refuses("getStubs", { namespace: "a", pageSize: 1, pageToken: page.nextPageToken }, `Bearer ${who}`, { code: "INVALID_ARGUMENT", reason: "INVALID_PAGE_TOKEN", says: /another filter/ });
    }
  });

  it("what is there and what is not are NOT_FOUND with the same words", async () => {
    const { stubs } = await target.call("getStubs", { namespace: "b" }, target.tokens.tenantB);
    const who = `Bearer ${target.tokens.operator}`;
    const missing = (id: string): Refused => ({ code: "NOT_FOUND", reason: "NOT_FOUND", says: new RegExp(`^no such (tool|server|digest) in this namespace: ${id}$`) });
    for (const namespace of ["b", "never-was"]) {
      await target.refuses("getServer", { namespace, serverId: "secret" }, who, missing("secret"));
      await target.refuses("getFullSchema", { namespace, toolId: "secret/tool" }, who, missing("secret/tool"));
      const { results } = await target.call("batchGetFullSchemas", { namespace, toolIds: ["secret/tool"] }, target.tokens.operator);
      expect(results).toMatchObject([{ error: { reason: "NOT_FOUND" } }]);
    }
    // The digest of what both tenants have is found in one's own namespace, and not in the other's.
    const digest = stubs[0].digest;
    await target.refuses("getFullSchema", { namespace: "b", digest }, who, missing(digest));
  });

  it("a watch hears nothing, and another's resume token is refused", { timeout: 60_000 }, async () => {
    const theirs = target.watch({ namespace: "b" }, target.tokens.tenantB);
    await theirs.ready();
    const spy = target.watch({ namespace: "b" }, target.tokens.operator);
    await spy.ready();
    for (const namespace of ["b", "a"]) {
      const stolen = target.watch({ namespace, resumeToken: theirs.token }, target.tokens.operator);
      expect(await ended(stolen)).toMatchObject({ code: "INVALID_ARGUMENT", reason: "INVALID_TOKEN" });
      const stolenHttp = target.watchHttp({ namespace, resumeToken: theirs.token }, target.tokens.operator);
      expect(await stolenHttp.ended).toMatchObject({ code: "INVALID_ARGUMENT", reason: "INVALID_TOKEN" });
    }
    await target.seed("tenantB", "b", "new-in-b");
    await eventually(() => theirs.told, (told) => told.includes("REGISTERED new-in-b/tool"));
    await target.call("deregister", { namespace: "b", serverId: "new-in-b" }, target.tokens.tenantB);
    await eventually(() => spy.bookmarks, (n) => n > 0, 40_000);
    expect(spy).toMatchObject({ stubs: [], events: [], error: undefined });
  });
});

describe("credentials that end", () => {
  it("a watch ends when its token leaves the file, and others go on", async () => {
    const token = plant(newToken());
    target.write([...target.entries(), entryOf(token, "guest", [{ role: "reader", namespaces: ["a"] }])]);
    await eventually(() => target.call("getStubs", { namespace: "a" }, token).then(() => true, () => false), (ok) => ok);
    const watch = target.watch({ namespace: "a" }, token);
    const overHttp = target.watchHttp({ namespace: "a" }, token);
    const other = target.watch({ namespace: "a" }, target.tokens.reader);
    for (const one of [watch, overHttp, other]) await one.ready();
    const before = await target.state();
    const { result, lines } = await target.logged(async () => {
      target.write(target.entries());
      return [await ended(watch), await overHttp.ended];
    });
    for (const end of result) expect(end).toMatchObject({ ...UNAUTHENTICATED, message: "the token is not known to this registry" });
    expect(lines.filter(({ method }) => method === `${SERVICE}/Watch`)).toMatchObject([UNAUTHENTICATED, UNAUTHENTICATED]);
    expect(lines.map(({ method, files }) => method ?? files)).toHaveLength(3); // These two, and that the file changed.
    expect(await target.state()).toEqual(before);
    await target.refuses("getStubs", { namespace: "a" }, `Bearer ${token}`, { ...UNAUTHENTICATED, says: /not known/ });
    await target.seed("alice", "a", "alice-later");
    await eventually(() => other.told, (told) => told.includes("REGISTERED alice-later/tool"));
    await target.call("deregister", { namespace: "a", serverId: "alice-later" }, target.tokens.alice);
  });

  it("a watch ends when its token may not read there any more", async () => {
    const token = plant(newToken());
    const entry = (namespace: string) => entryOf(token, "guest", [{ role: "reader", namespaces: [namespace] }]);
    target.write([...target.entries(), entry("a")]);
    await eventually(() => target.call("getStubs", { namespace: "a" }, token).then((p) => p.stubs.length, () => 0), (n) => n > 0);
    const watch = target.watch({ namespace: "a" }, token);
    const overHttp = target.watchHttp({ namespace: "a" }, token);
    for (const one of [watch, overHttp]) await one.ready();
    target.write([...target.entries(), entry("b")]);
    for (const end of [await ended(watch), await overHttp.ended])
      expect(end).toMatchObject({ ...UNAUTHENTICATED, message: "what the credential allows has changed: call again with it" });
    await withoutGuest(token);
  });

  it("a watch ends when its token expires, static or JWT", async () => {
    const token = plant(newToken());
    target.write([...target.entries(), entryOf(token, "guest", [{ role: "reader", namespaces: ["a"] }], new Date(Date.now() + 12_000))]);
    await eventually(() => target.call("getStubs", { namespace: "a" }, token).then(() => true, () => false), (ok) => ok);
    // Accepted for 30 s beyond its end, as clocks differ.
    const jwt = plant(await target.issuer.sign({ exp: seconds(-18) }));
    const watches = [target.watch({ namespace: "a" }, token), target.watch({ namespace: "a" }, jwt)];
    const overHttp = [target.watchHttp({ namespace: "a" }, token), target.watchHttp({ namespace: "a" }, jwt)];
    for (const watch of [...watches, ...overHttp]) await watch.ready();
    const ends = [...watches.map(ended), ...overHttp.map((watch) => watch.ended)];
    for (const end of await Promise.all(ends)) expect(end).toMatchObject({ ...UNAUTHENTICATED, message: "the token has expired" });
    await withoutGuest(token);
  });

  /** The file as it was, and in force: what the registry says of that is then no line of the next test. */
  async function withoutGuest(token: string): Promise<void> {
    target.write(target.entries());
    const said = () => target.call("getStubs", { namespace: "a" }, token).then(() => "", (error: { details: string }) => error.details);
    await eventually(said, (text) => text.includes("not known"));
  }

  it("a broken file takes nothing away and is told of", async () => {
    const { lines } = await target.logged(async () => {
      target.write([{ sha256: plant(newToken()), principal: "x", grants: [] }]);
      await eventually(() => target.registry.output().includes("stays in force"), (told) => told);
    });
    target.write(target.entries());
    expect(lines).toMatchObject([{ level: "error", problems: [expect.stringContaining("sha256"), expect.stringContaining("grants")] }]);
    expect((await target.call("getStubs", { namespace: "a" }, target.tokens.reader)).stubs).toHaveLength(2);
  });
});

it("no token is in logs, metrics or health, and neither is a hash", async () => {
  const metrics = await (await fetch(`${target.registry.ops}/metrics`)).text();
  const written = `${target.registry.output()}${metrics}`;
  expect(planted.length).toBeGreaterThan(10);
  for (const secret of [...planted, ...Object.values(target.tokens)]) expect(written).not.toContain(secret);
  for (const { sha256 } of target.entries()) expect(written).not.toContain(sha256);
  expect(written).not.toContain("cm9vdDpodW50ZXIy");
});

/** Why the registry ended it. */
async function ended(watch: RemoteWatch): Promise<ReadError> {
  return readError((await eventually(() => watch.error, (error) => error !== undefined)) as ServiceError);
}

/** `grpc.health.v1` by hand: the status is the second byte of the answer. */
function health(address: string): Promise<number | undefined> {
  const client = new Client(address, credentials.createInsecure());
  return new Promise<number | undefined>((resolve, reject) => {
    const asIs = (bytes: Buffer): Buffer => bytes;
    client.makeUnaryRequest("/grpc.health.v1.Health/Check", asIs, asIs, Buffer.alloc(0), bearer(undefined), (error, answer) =>
      error ? reject(error) : resolve(answer?.[1]),
    );
  }).finally(() => client.close());
}
