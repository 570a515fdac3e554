import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { PeerCertificate } from "node:tls";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { Fault } from "../../../src/domain/fault.js";
import type { Principal } from "../../../src/domain/identity.js";
import type { Authenticator, Credentials } from "../../../src/rpc/identity/authenticator.js";
import { alternativeNames } from "../../../src/rpc/identity/certificates.js";
import { readKeySet } from "../../../src/rpc/identity/keys.js";
import { openIdentity } from "../../../src/rpc/identity/open.js";
import { readTokens } from "../../../src/rpc/identity/tokens.js";
import { AUDIENCE, entryOf, ISSUER, Issuer, newToken, seconds, writeTokens } from "../../support/identity.js";
import { startDns } from "../../support/dns.js";
import { eventually, localPolicy } from "../../support/upstream.js";
import type { WayOut } from "../../../src/rpc/identity/keys.js";

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

function open(files: { tokens?: string; keys?: string; certificates?: string }, way: WayOut = { policy: localPolicy }): Authenticator {
  const options = { tokensFile: files.tokens ?? "", jwtJwks: files.keys ?? "", certificatesFile: files.certificates ?? "", jwt, way };
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

describe("a key set at a URL goes the registry's one way out", () => {
  const closed = { ...localPolicy, inside: "closed" as const };

  /** An issuer that answers as it is told; `told` waits for the error that the registry logs of it. */
  async function issuerAt(listener: RequestListener): Promise<{ url: string; port: number }> {
    const server = createServer(listener);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    const { port } = server.address() as AddressInfo;
    return { url: `http://127.0.0.1:${port}/jwks`, port };
  }

  async function told(): Promise<string> {
    const [first] = await eventually(() => log.filter((l) => l.level === "error"), (errors) => errors.length > 0);
    expect(first?.message).toBe("the key set cannot be fetched: nobody is let in by a JWT until it is");
    return (first?.fields as { err?: Error } | undefined)?.err?.message ?? "";
  }

  it("to the host that the operator named, though the policy is closed to it otherwise", async () => {
    const issuer = await Issuer.create();
    const { url, port } = await issuerAt((_request, response) => response.end(JSON.stringify(issuer.jwks)));
    const dns = await startDns({ localhost: ["127.0.0.1"] });
    for (const keys of [url, `http://localhost:${port}/jwks`]) {
      const identity = open({ keys }, { policy: closed, resolve: dns.resolve });
      await eventually(async () => judge(identity, withToken(await issuer.sign())).catch(() => undefined), (p) => p?.id === "jwt-user");
    }
    expect(dns.asked).toContain("localhost");
  });

  it.each([
    ["https://169.254.169.254/jwks", "169.254.169.254 is a cloud metadata address, which is never dialled"],
    ["https://0xA9FEA9FE/jwks", "is a cloud metadata address"],
    ["https://metadata.google.internal/jwks", "is a cloud metadata address"],
    ["https://issuer.example:6379/jwks", "port 6379 (Redis) is never dialled"],
  ])("%s is refused at the start", (keys, says) => {
    expect(() => open({ keys })).toThrow(`--jwt-jwks (TOOLCRIB_JWT_JWKS) cannot be fetched: `);
    expect(() => open({ keys })).toThrow(says);
  });

  it("and not to a name that resolves to metadata", async () => {
    const dns = await startDns({ "issuer.test": ["169.254.169.254"] });
    open({ keys: "https://issuer.test/jwks" }, { policy: closed, resolve: dns.resolve });
    expect(await told()).toContain("issuer.test resolves to a cloud metadata address");
  });

  it.each<[string, RequestListener, string]>([
    ["a redirect", (_request, response) => void response.writeHead(302, { location: "http://169.254.169.254/" }).end(), "with HTTP 302, and redirects are not followed"],
    ["more than it may hold", (_request, response) => void response.end(" ".repeat(300_000)), "answered the request for the key set with more than 262144 bytes"],
    ["what is compressed", (_request, response) => void response.writeHead(200, { "content-encoding": "gzip" }).end("x"), "sent gzip although identity was asked for"],
    ["64 KiB of headers", (_request, response) => void response.writeHead(200, { "x-noise": "n".repeat(65_536) }).end("{}"), "bytes of headers"],
  ])("%s is not taken", async (_what, listener, says) => {
    open({ keys: (await issuerAt(listener)).url });
    expect(await told()).toContain(says);
  });

  it("and by no proxy", async () => {
    const issuer = await Issuer.create();
    const { url } = await issuerAt((_request, response) => response.end(JSON.stringify(issuer.jwks)));
    for (const name of ["HTTP_PROXY", "http_proxy", "ALL_PROXY"]) vi.stubEnv(name, "http://127.0.0.1:9");
    onTestFinished(() => void vi.unstubAllEnvs());
    const identity = open({ keys: url });
    await eventually(async () => judge(identity, withToken(await issuer.sign())).catch(() => undefined), (p) => p?.id === "jwt-user");
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
