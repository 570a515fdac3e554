import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { PeerCertificate } from "node:tls";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { Fault } from "../../../src/domain/fault.js";
import type { Principal } from "../../../src/domain/identity.js";
import type { Authenticator, Credentials } from "../../../src/rpc/identity/authenticator.js";
import { alternativeNames } from "../../../src/rpc/identity/certificates.js";
import { readKeySet } from "../../../src/rpc/identity/keys.js";
import { openIdentity } from "../../../src/rpc/identity/open.js";
import { readTokens } from "../../../src/rpc/identity/tokens.js";
import { AUDIENCE, entryOf, ISSUER, Issuer, newToken, seconds, writeTokens } from "../../support/identity.js";
import { eventually } from "../../support/upstream.js";

let folder: string;
let log: { level: string; fields: object; message: string }[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "toolcrib-identity-"));
  log = [];
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const write = (level: string) => (fields: object, message: string) => void log.push({ level, fields, message });
const logger = { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
const grants = [{ role: "reader" as const, namespaces: ["a"] }];
const jwt = { issuer: ISSUER, audience: AUDIENCE, algorithms: ["ES256", "RS256"] };

function open(files: { tokens?: string; keys?: string; certificates?: string }): Authenticator {
  const options = { tokensFile: files.tokens ?? "", jwtJwks: files.keys ?? "", certificatesFile: files.certificates ?? "", jwt };
  const identity = openIdentity(options, logger, Date.now);
  onTestFinished(() => identity.close());
  return identity;
}

async function judge(identity: Authenticator, credentials: Credentials): Promise<Principal> {
  return identity.authenticate(credentials);
}

const withToken = (token: string): Credentials => ({ authorization: `Bearer ${token}` });

async function refusal(identity: Authenticator, credentials: Credentials): Promise<string> {
  const thrown: unknown = await judge(identity, credentials).catch((e: unknown) => e);
  if (!(thrown instanceof Fault)) throw new Error(`it was let in, or failed otherwise: ${String(thrown)}`);
  expect(thrown.reason).toBe("UNAUTHENTICATED");
  return thrown.message;
}

describe("static tokens", () => {
  it("are told by their hash; the scheme is case-insensitive", async () => {
    const path = join(folder, "tokens.json");
    const token = newToken();
    writeTokens(path, [entryOf(token, "ci", grants)]);
    const identity = open({ tokens: path });
    expect(await judge(identity, { authorization: `bEaReR ${token}` })).toEqual({ id: "ci", grants });
    for (const bad of ["", "Bearer", `Basic ${token}`, `Bearer ${token} x`, `Bearer ${token}, Bearer ${token}`, `Bearer ${token}é`])
      expect(await refusal(identity, { authorization: bad })).toMatch(/malformed/);
    for (const bad of [`${token}x`, token.slice(1), token.toUpperCase()]) expect(await refusal(identity, withToken(bad))).toMatch(/not known/);
    expect(await refusal(identity, { authorization: undefined })).toMatch(/no credential/);
  });

  it("expire", async () => {
    const path = join(folder, "tokens.json");
    const token = newToken();
    writeTokens(path, [entryOf(token, "ci", grants, new Date(Date.now() - 1))]);
    expect(await refusal(open({ tokens: path }), withToken(token))).toBe("the token has expired");
  });

  it("change with their file; a broken one keeps the old in force and tells of it once, without its content", async () => {
    const path = join(folder, "tokens.json");
    const [first, second] = [newToken(), newToken()];
    writeTokens(path, [entryOf(first, "one", grants)]);
    const identity = open({ tokens: path });
    let changes = 0;
    identity.onChange(() => void changes++);

    writeFileSync(path, JSON.stringify({ tokens: [{ sha256: second, principal: "anonymous", grants: [{ role: "x", namespaces: [] }] }] }));
    const errors = () => log.filter((l) => l.level === "error");
    await eventually(errors, (e) => e.length > 0);
    const told = JSON.stringify(errors());
    for (const said of ["sha256", "anonymous", "role", "namespaces"]) expect(told).toContain(said);
    expect(told).not.toContain(second);
    expect(await judge(identity, withToken(first))).toMatchObject({ id: "one" });
    writeFileSync(path, `{"tokens": [ ${second}`);
    await eventually(errors, (e) => e.length > 1);
    expect(JSON.stringify(errors())).not.toContain(second);
    expect(changes).toBe(0);

    writeTokens(path, [entryOf(second, "two", grants)]);
    await eventually(() => changes, (n) => n === 1);
    expect(await judge(identity, withToken(second))).toMatchObject({ id: "two" });
    expect(await refusal(identity, withToken(first))).toMatch(/not known/);
    expect(errors()).toHaveLength(2);
  });

  it("a file that cannot be used at the start is an error with all of its problems", () => {
    const path = join(folder, "tokens.json");
    expect(() => open({ tokens: path })).toThrow(/tokens file cannot be read: .*ENOENT/);
    writeFileSync(path, JSON.stringify({ tokens: [{}, 1] }));
    expect(() => open({ tokens: path })).toThrow(/tokens\[1\] must be an object/);
    const same = entryOf("x", "ci", grants);
    const read = readTokens(Buffer.from(JSON.stringify({ tokens: [same, { ...same, expires: "soon", scope: 1 }] })));
    const problems = read.ok ? "" : read.problems.join("\n");
    for (const said of ["same as that of another", "expires", "none of"]) expect(problems).toContain(said);
  });
});

describe("JWTs", () => {
  let issuer: Issuer;
  let identity: Authenticator;
  beforeEach(async () => {
    issuer = await Issuer.create();
    writeFileSync(join(folder, "jwks.json"), JSON.stringify(issuer.jwks));
    identity = open({ keys: join(folder, "jwks.json") });
  });

  it("are principals with the grants of their claim, and their own end", async () => {
    const exp = seconds(100);
    for (const alg of ["ES256", "RS256"] as const) {
      const token = await issuer.sign({ exp, toolcrib: grants }, { alg });
      const expected = { id: "jwt-user", grants, expiresAtMs: (exp + 30) * 1_000 };
      expect(await judge(identity, withToken(token))).toEqual(expected);
      expect(await judge(identity, withToken(token))).toEqual(expected);
    }
  });

  it.each<[string, Parameters<Issuer["sign"]>, RegExp]>([
    ["expired", [{ exp: seconds(-31) }], /expired/],
    ["not valid yet", [{ nbf: seconds(60) }], /not valid yet/],
    ["for another audience", [{ aud: "elsewhere" }], /another audience/],
    ["of another issuer", [{ iss: "https://evil.example" }], /another issuer/],
    ["without an end", [{ exp: undefined }], /lacks the claim exp/],
    ["without a subject", [{ sub: undefined }], /lacks the claim sub/],
    ["of nobody", [{ sub: "anonymous" }], /sub claim/],
    ["without grants", [{ toolcrib: undefined }], /claim toolcrib must be a list/],
    ["with strange grants", [{ toolcrib: [{ role: "root", namespaces: ["*"] }] }], /toolcrib\[0\].role/],
    ["with an unknown key", [{}, { kid: "other" }], /key that this registry does not know/],
    ["with the key of another algorithm", [{}, { kid: "rsa-1" }], /key that this registry does not know/],
  ])("%s are refused", async (_what, [claims, header], says) => {
    expect(await refusal(identity, withToken(await issuer.sign(claims, header)))).toMatch(says);
  });

  it("alg none, an HMAC under the public key, a bent signature and noise are refused", async () => {
    expect(await refusal(identity, withToken(issuer.unsigned()))).toMatch(/algorithm/);
    expect(await refusal(identity, withToken(await issuer.confused()))).toMatch(/algorithm/);
    const good = await issuer.sign();
    const [head, , signature] = good.split(".") as [string, string, string];
    const [, other] = (await issuer.sign({ sub: "root" })).split(".") as [string, string];
    expect(await refusal(identity, withToken(`${head}.${other}.${signature}`))).toMatch(/signature/);
    expect(await refusal(identity, withToken("aaaa.bbbb.cccc"))).toMatch(/malformed/);
  });

  it("a key that is taken away takes its tokens with it", async () => {
    const token = await issuer.sign();
    await judge(identity, withToken(token));
    let changed = false;
    identity.onChange(() => void (changed = true));
    writeFileSync(join(folder, "jwks.json"), JSON.stringify((await Issuer.create()).jwks));
    await eventually(() => changed, (is) => is);
    expect(await refusal(identity, withToken(token))).toMatch(/signature/);
  });

  it("a key set holds public keys alone", () => {
    const read = readKeySet(Buffer.from(JSON.stringify({ keys: [{ kty: "oct", k: "c2VjcmV0" }, { kty: "EC", d: "x" }, 1] })));
    const problems = read.ok ? "" : read.problems.join("\n");
    for (const said of ["keys[0] is a shared secret", "keys[1] is a private key", "keys[2] must be an object"]) expect(problems).toContain(said);
  });
});

describe("a key set at a URL", () => {
  it("is fetched, fetched again for an unknown key, and its absence is no refusal", async () => {
    let answer: object | undefined;
    let asked = 0;
    const server = createServer((_request, response) => {
      asked++;
      response.statusCode = answer ? 200 : 503;
      response.end(JSON.stringify(answer ?? {}));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const issuer = await Issuer.create();
    const identity = open({ keys: `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks` });
    const token = await issuer.sign();
    await eventually(() => log.length, (n) => n > 0);
    const missing: unknown = await judge(identity, withToken(token)).catch((e: unknown) => e);
    expect(missing).toMatchObject({ reason: "NOT_READY", status: "UNAVAILABLE" });
    answer = issuer.jwks;
    await eventually(() => judge(identity, withToken(token)).catch(() => undefined), (p) => p?.id === "jwt-user");
    const before = asked;
    // Within the cool-down an invented key id costs the issuer nothing.
    for (let i = 0; i < 5; i++) expect(await refusal(identity, withToken(await issuer.sign({}, { kid: `k${i}` })))).toMatch(/does not know/);
    expect(asked).toBe(before);
  });
});

describe("client certificates", () => {
  const certificate = (subjectaltname: string, valid_to = "Jan  1 00:00:00 2099 GMT") => ({ subjectaltname, valid_to }) as PeerCertificate;
  const shown = (...args: Parameters<typeof certificate>): Credentials => ({ authorization: undefined, certificate: { verified: true, certificate: certificate(...args) } });

  it("name principals by URI or DNS name", async () => {
    const path = join(folder, "certificates.json");
    writeFileSync(path, JSON.stringify({ certificates: [{ san: "spiffe://acme/billing", grants }] }));
    const identity = open({ certificates: path });
    expect(await judge(identity, shown("DNS:x.example, URI:spiffe://acme/billing"))).toMatchObject({ id: "spiffe://acme/billing", grants });
    expect(await refusal(identity, shown("DNS:x.example"))).toMatch(/not known/);
    expect(await refusal(identity, shown("IP Address:127.0.0.1"))).toMatch(/no URI or DNS name/);
    expect(await refusal(identity, shown("URI:spiffe://acme/billing", "Jan  1 00:00:00 2001 GMT"))).toMatch(/expired/);
    expect(await refusal(identity, { authorization: undefined, certificate: { verified: false } })).toMatch(/trusts/);
    expect(await refusal(identity, { authorization: undefined })).toMatch(/client certificate/);
  });

  it("a name that quotes another is not taken for it", () => {
    expect(alternativeNames('DNS:"evil.example, URI:spiffe://acme/root", URI:spiffe://acme/me')).toEqual(["evil.example, URI:spiffe://acme/root", "spiffe://acme/me"]);
    expect(alternativeNames("")).toEqual([]);
  });
});
