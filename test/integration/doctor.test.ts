/** The commands of whoever looks after a registry: doctor and top, against real listeners of every kind. */
import { createServer as createHttp } from "node:http";
import type { AddressInfo, Server } from "node:net";
import { createServer as createTcp } from "node:net";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { skewFinding } from "../../src/cli/doctor/ops.js";
import type { Finding } from "../../src/cli/doctor/finding.js";
import { toolcribDone } from "../support/cli.js";
import { Authority, entryOf, hasOpenssl, newToken, writeTokens } from "../support/identity.js";
import { declared, RemoteRegistry, startRegistry, temporaryFolder } from "../support/registry.js";
import { corpusFile, startFixture } from "../support/servers.js";
import { freePort } from "../support/ports.js";
import { SmallRegistry } from "../support/small-registry.js";

async function doctor(args: readonly string[], env: Record<string, string> = {}) {
  const done = await toolcribDone(["doctor", "--json", ...args], env);
  const { findings } = JSON.parse(done.stdout) as { readonly findings: Finding[] };
  return { code: done.code, findings, text: done.stdout };
}

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe("doctor", () => {
  it("finds nothing wrong where nothing is, and names a server that is away with its cure", {
    timeout: 60_000,
  }, async () => {
    const registry = await startRegistry({ store: "memory" });
    const ops = ["--registry", registry.grpc, "--ops", registry.ops];
    const git = await startFixture("corpus-server.mjs", [corpusFile("git")]);
    await toolcribDone(["register", "--id", "git", "--url", git.url, "--registry", registry.grpc]);
    const well = await doctor(ops);
    expect(well.code, well.text).toBe(0);
    expect(well.findings.map(({ check, level }) => `${level} ${check}`)).toEqual([
      ...["ok connection", "ok readiness", "ok store", "ok version", "ok clock", "ok credentials", "ok server git"],
    ]);
    expect(well.findings.at(-1)?.text).toMatch(/^\d+ tools, last listed \d+ s ago$/);

    const url = `http://127.0.0.1:${await freePort()}/mcp`;
    await toolcribDone(["register", "--id", "ghost", "--url", url, "--registry", registry.grpc]);
    const ill = await doctor(ops);
    expect(ill.code).toBe(1);
    const ghost = ill.findings.filter(({ check }) => check === "server ghost");
    expect(ghost.map(({ level }) => level)).toEqual(["fail", "fail"]);
    expect(ghost[0]?.todo).toContain("start the server");
    expect(ghost[1]?.text).toContain("cannot be reached from here");
    const human = await toolcribDone(["doctor", ...ops]);
    expect(human).toMatchObject({ code: 1, stderr: "" });
    expect(human.stdout).toMatch(/^FAIL {2}server ghost: .+\n {6}→ start the server/m);
  });

  it("tells apart refused, a web server, silence, another protocol and a name without an address", {
    timeout: 60_000,
  }, async () => {
    const web = await listen(createHttp((_request, response) => response.end("hello")));
    const silent = await listen(createTcp((socket) => socket.on("error", () => undefined)));
    const other = await listen(
      createTcp((socket) => socket.on("error", () => undefined).write("220 mail.example ESMTP\r\n")),
    );
    const cases: [string, RegExp][] = [
      [`127.0.0.1:${await freePort()}`, /refuses connections/],
      [web, /is a web server, not a gRPC server/],
      [silent, /says nothing/],
      [other, /not a gRPC server/],
      ["no-such-host.invalid:7850", /has no address/],
    ];
    const told = await Promise.all(cases.map(async ([address]) => doctor(["--registry", address])));
    cases.forEach(([, pattern], i) => {
      expect(told[i]?.code).toBe(1);
      expect(told[i]?.findings).toEqual([
        {
          check: "connection",
          level: "fail",
          text: expect.stringMatching(pattern) as string,
          todo: expect.any(String) as string,
        },
      ]);
    });
    const ls = await toolcribDone(["ls", "--registry", web]);
    expect(ls).toMatchObject({ code: 1, stdout: "" });
    expect(ls.stderr).toMatch(/is a web server, not a gRPC server\n→ name the registry/);
  });

  it("says that a caller has no credential, and that a gRPC server is no registry", {
    timeout: 60_000,
  }, async () => {
    const tokens = join(await temporaryFolder(), "tokens.json");
    const token = newToken();
    writeTokens(tokens, [entryOf(token, "me", [{ role: "operator", namespaces: ["*"] } as never])]);
    const { grpc, ops } = await startRegistry({ store: "memory", args: ["--tokens-file", tokens] });
    const without = await doctor(["--registry", grpc, "--ops", ops]);
    expect(without.code).toBe(1);
    expect(without.findings.find(({ level }) => level === "fail")).toMatchObject({
      check: "credentials",
      todo: expect.stringContaining("TOOLCRIB_TOKEN") as string,
    });
    const known = await doctor(["--registry", grpc, "--ops", ops], { TOOLCRIB_TOKEN: token });
    expect(known.code, known.text).toBe(0);
    expect(known.text).not.toContain(token);

    const small = await SmallRegistry.start();
    onTestFinished(() => small.stop());
    // It has no health service: a gRPC server, and no registry as ours are.
    const stranger = await doctor(["--registry", small.address]);
    expect(stranger.findings[0]).toMatchObject({
      level: "fail",
      text: expect.stringContaining("no Toolcrib registry") as string,
    });
  });

  it.skipIf(!hasOpenssl)("says what is wrong with TLS on either side", { timeout: 60_000 }, async () => {
    const folder = await temporaryFolder();
    const authority = new Authority(folder, "authority");
    const { cert, key } = authority.issue("registry", "DNS:localhost,IP:127.0.0.1");
    const { grpc, ops } = await startRegistry({
      store: "memory",
      args: ["--tls-cert", cert, "--tls-key", key],
      unready: true,
    });
    const at = (address: string, env: Record<string, string> = {}) => doctor(["--registry", address], env);
    const trusting = { TOOLCRIB_CA: authority.cert };
    const plain = await startRegistry({ store: "memory" });
    const [unsaid, untrusted, named, clear] = await Promise.all([
      at(grpc),
      at(`grpcs://${grpc}`),
      doctor(["--registry", `grpcs://${grpc}`, "--ops", ops.replace("http:", "https:")], trusting),
      at(`grpcs://${plain.grpc}`, trusting),
    ]);
    expect(unsaid.findings[0]).toMatchObject({
      check: "certificate",
      todo: expect.stringContaining("grpcs://") as string,
    });
    expect(untrusted.findings[0]).toMatchObject({
      check: "certificate",
      todo: expect.stringContaining("TOOLCRIB_CA") as string,
    });
    expect(clear.findings[0]).toMatchObject({
      check: "certificate",
      text: expect.stringContaining("does not speak TLS") as string,
    });
    const others = await Promise.all(
      [grpc, `grpcs://${grpc}`, `grpcs://${plain.grpc}`].map((address) => toolcribDone(["servers", "--registry", address])),
    );
    expect(others.map(({ stderr }) => stderr)).toEqual([
      expect.stringContaining(`→ use grpcs://${grpc}`),
      expect.stringContaining("TOOLCRIB_CA"),
      expect.stringContaining("does not speak TLS"),
    ]);
    expect(others.every(({ stderr }) => !stderr.includes("npx toolcrib"))).toBe(true);
    expect(named.code, named.text).toBe(0);
    expect(named.findings.map(({ check }) => check)).toContain("clock");
  });

  it("judges the clock by what a whole-second date can tell", () => {
    expect(skewFinding(10_000, 10_100, 10_300).level).toBe("ok");
    expect(skewFinding(15_000, 10_100, 10_300)).toMatchObject({
      level: "warn",
      text: expect.stringContaining("5 s ahead") as string,
    });
    expect(skewFinding(100_000, 300_000, 300_100)).toMatchObject({
      level: "fail",
      text: expect.stringContaining("199 s behind") as string,
    });
  });
});

describe("top --once", () => {
  it("prints one frame for a pipe, with rates from the ops listener", { timeout: 60_000 }, async () => {
    const { grpc, ops } = await startRegistry({ store: "memory" });
    const tools = [{ name: "a", description: "Does a", inputSchema: { type: "object" } }];
    await new RemoteRegistry(grpc).call("register", declared("one", tools));
    const done = await toolcribDone(["top", "--once", "--registry", grpc, "--ops", ops]);
    expect(done, done.stderr).toMatchObject({ code: 0, stderr: "" });
    const lines = done.stdout.trimEnd().split("\n");
    expect(lines.length).toBeLessThanOrEqual(24);
    expect(lines.every((line) => line.length <= 80)).toBe(true);
    expect(lines[0]).toMatch(/^toolcrib \S+ at 127\.0\.0\.1:\d+ {3}namespace default {3}\d\d:\d\d:\d\d {3}serving$/);
    expect(lines[1]).toMatch(/^revision \d+ {3}store up {3}lag 0/);
    expect(lines[2]).toBe("servers 1: 1 up, 0 down, 0 isolated, 0 pending   tools 1");
    expect(done.stdout).toMatch(/^Register +\d/m);
    expect(done.stdout).toMatch(/^one +up +1 /m);
    expect(done.stdout).not.toContain("\u001b");
  });

  it("shows servers without rates where the ops listener is not heard, and is refused where there is no registry", {
    timeout: 60_000,
  }, async () => {
    const { grpc } = await startRegistry({ store: "memory" });
    const deaf = await toolcribDone(["top", "--once", "--registry", grpc, "--ops", `127.0.0.1:${await freePort()}`]);
    expect(deaf.stdout).toContain("no rates: the ops listener was not heard");
    const away = await toolcribDone(["top", "--once", "--registry", `127.0.0.1:${await freePort()}`]);
    expect(away).toMatchObject({ code: 1, stdout: "" });
    expect(away.stderr).toContain("Start one with `npx toolcrib`, name another with --registry");
    expect((await toolcribDone(["top", "--registry", grpc])).code).toBe(2);
  });
});
