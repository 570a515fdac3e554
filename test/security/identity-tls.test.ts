/** TLS on every listener, callers known by certificate, and new certificates without a restart. */
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request as httpsRequest } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "node:tls";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RegistryConnection } from "../../src/client/connection.js";
import { RegistryError } from "../../src/client/registry-error.js";
import { parseTarget } from "../../src/client/target.js";
import { accessFrom } from "../../src/client/access.js";
import { SERVICE } from "../integration/grpc-support.js";
import { toolcrib } from "../support/cli.js";
import { Authority, type Certificate, entryOf, hasOpenssl, newToken, writeTokens } from "../support/identity.js";
import { type RegistryProcess, startRegistry } from "../support/registry.js";
import { eventually } from "../support/upstream.js";

if (!hasOpenssl) process.stderr.write("openssl is not here: the tests of TLS are skipped.\n");

describe.skipIf(!hasOpenssl)("a registry with certificates", () => {
  let folder: string;
  let ca: Authority;
  let good: Certificate;
  let registry: RegistryProcess;
  const token = newToken();
  const at = (file: string): string => join(folder, file);

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "toolcrib-tls-"));
    ca = new Authority(folder, "ca");
    const clients = new Authority(folder, "clients");
    good = clients.issue("good", "URI:spiffe://acme/billing");
    clients.issue("unknown", "DNS:stranger.example");
    new Authority(folder, "others").issue("foreign", "URI:spiffe://acme/billing");
    install(ca.issue("first", "DNS:localhost,IP:127.0.0.1"));
    ca.issue("second", "DNS:localhost,IP:127.0.0.1");
    writeTokens(at("tokens.json"), [entryOf(token, "ci", [{ role: "operator", namespaces: ["*"] }])]);
    const grants = [{ role: "registrant", namespaces: ["default"], servers: ["billing-*"] }];
    writeFileSync(at("certificates.json"), JSON.stringify({ certificates: [{ san: "spiffe://acme/billing", grants }] }));
    const args = [
      ...["--tls-cert", at("server.pem"), "--tls-key", at("server.key"), "--tls-client-ca", clients.cert],
      ...["--certificates-file", at("certificates.json"), "--tokens-file", at("tokens.json")],
    ];
    registry = await startRegistry({ keep: true, dataDir: at("data"), args, unready: true });
    await eventually(() => get(`${registry.ops}/readyz`).catch(() => 0), (status) => status === 200);
  });
  afterAll(async () => {
    await registry?.kill();
    rmSync(folder, { recursive: true, force: true });
  });

  function install({ cert, key }: Certificate): void {
    copyFileSync(key, at("server.key"));
    copyFileSync(cert, at("server.pem"));
  }

  function get(url: string): Promise<number> {
    return new Promise((resolve, reject) => {
      httpsRequest(url, { ca: readFileSync(ca.cert) }, (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      })
        .on("error", reject)
        .end();
    });
  }

  /** One GetStubs over gRPC; the connection is this call's own. */
  async function overGrpc(env: Record<string, string>): Promise<string> {
    const access = accessFrom({ TOOLCRIB_CA: ca.cert, ...env });
    const connection = new RegistryConnection({ ...parseTarget(`grpcs://${registry.grpc}`), access });
    try {
      await connection.getStubs({});
      return "in";
    } catch (error) {
      if (!(error instanceof RegistryError)) throw error;
      return `${error.reason}: ${error.message}`;
    } finally {
      connection.close();
    }
  }

  /** The same over HTTP. */
  function overHttp(env: Record<string, string>): Promise<string> {
    const { cert, key, token: bearer } = accessFrom(env);
    const authorization = bearer?.();
    const headers = { "content-type": "application/json", ...(authorization && { authorization: `Bearer ${authorization}` }) };
    return new Promise((resolve, reject) => {
      const options = { method: "POST", headers, ca: readFileSync(ca.cert), cert, key, agent: false };
      httpsRequest(`https://${new URL(registry.http).host}/${SERVICE}/GetStubs`, options, (response) => {
        let text = "";
        response.on("data", (part: Buffer) => void (text += part.toString()));
        response.on("end", () => resolve(response.statusCode === 200 ? "in" : String((JSON.parse(text) as { message: string }).message)));
      })
        .on("error", reject)
        .end("{}");
    });
  }

  const own = (name: string) => ({ TOOLCRIB_CERT: at(`${name}.pem`), TOOLCRIB_KEY: at(`${name}.key`) });

  it.each<[string, () => Record<string, string>, RegExp]>([
    ["a certificate that is known", () => own("good"), /^in$/],
    ["a token", () => ({ TOOLCRIB_TOKEN: token }), /^in$/],
    ["a token, which counts before a certificate", () => ({ ...own("good"), TOOLCRIB_TOKEN: newToken() }), /token is not known/],
    ["a certificate with unknown names", () => own("unknown"), /names are not known/],
    ["a certificate of another authority", () => own("foreign"), /not from an authority that this registry trusts/],
    ["neither", () => ({}), /no credential: send .*Bearer.* or a client certificate/],
  ])("%s, on both listeners", async (_what, env, says) => {
    expect(await overGrpc(env())).toMatch(says);
    expect(await overHttp(env())).toMatch(says);
  });

  it("the certificate's name owns what it registers, within its pattern", async () => {
    const access = accessFrom({ TOOLCRIB_CA: ca.cert, TOOLCRIB_CERT: good.cert, TOOLCRIB_KEY: good.key });
    const connection = new RegistryConnection({ ...parseTarget(`grpcs://${registry.grpc}`), access });
    const definition = Buffer.from('{"name":"t","inputSchema":{"type":"object"}}');
    const register = (serverId: string) =>
      connection.register({ serverId, instanceId: "instance-1", offer: { case: "declared", value: { tools: [{ definition }] } } });
    await register("billing-1");
    await expect(register("other")).rejects.toMatchObject({ reason: "FORBIDDEN", message: expect.stringContaining("spiffe://acme/billing may not") });
    expect((await connection.getServer({ serverId: "billing-1" })).server?.owner).toBe("spiffe://acme/billing");
    connection.close();
  });

  it("the command line finds its way by environment alone, and says whom it does not trust", async () => {
    const url = { TOOLCRIB_URL: `grpcs://${registry.grpc}` };
    const known = toolcrib(["ls"], { ...url, TOOLCRIB_CA: ca.cert, TOOLCRIB_TOKEN: token });
    expect(await known.exit).toEqual([0, null]);
    const stranger = toolcrib(["ls"], { ...url, TOOLCRIB_TOKEN: token });
    expect(await stranger.exit).toEqual([1, null]);
    expect(stranger.stderr()).toContain("TOOLCRIB_CA");
    const nobody = toolcrib(["ls"], { ...url, TOOLCRIB_CA: ca.cert });
    expect(await nobody.exit).toEqual([1, null]);
    expect(nobody.stderr()).toContain("Set TOOLCRIB_TOKEN");
    expect(`${stranger.stderr()}${nobody.stderr()}`).not.toContain(token);
  });

  it("a key that does not fit is told of and changes nothing; a new pair is shown on every listener, and open connections live on", async () => {
    const shown = (address: string): Promise<string> =>
      new Promise((resolve, reject) => {
        const [host = "", port = ""] = address.replace(/^https?:\/\//, "").split(":");
        const socket = connect({ host, port: Number(port), ca: readFileSync(ca.cert), ALPNProtocols: ["h2", "http/1.1"] }, () => {
          resolve(socket.getPeerCertificate().subject.CN as string);
          socket.destroy();
        }).on("error", reject);
      });
    const listeners = [registry.grpc, registry.http, registry.ops];
    for (const listener of listeners) expect(await shown(listener)).toBe("ca first");
    const access = accessFrom({ TOOLCRIB_CA: ca.cert, TOOLCRIB_TOKEN: token });
    const open = new RegistryConnection({ ...parseTarget(`grpcs://${registry.grpc}`), access });
    await open.getStubs({});

    copyFileSync(at("second.key"), at("server.key"));
    await eventually(() => registry.output(), (text) => text.includes("the key does not belong to the certificate"));
    for (const listener of listeners) expect(await shown(listener)).toBe("ca first");
    copyFileSync(at("second.pem"), at("server.pem"));
    for (const listener of listeners) await eventually(() => shown(listener), (name) => name === "ca second");
    await open.getStubs({});
    open.close();
    expect(registry.output()).not.toContain("PRIVATE KEY");
  });
});
