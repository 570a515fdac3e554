/** The package as others get it: packed, installed into an empty project, run and imported there. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { eventually } from "../support/upstream.js";

// npm and tsc on a machine that may be slow; each command has its own end.
vi.setConfig({ testTimeout: 120_000 });

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "toolcrib-package-"));
let tarball = "";
/** Why nothing can be installed here; empty where it was. */
let why = "";

function run(command: string, args: readonly string[], cwd: string, timeout = 50_000) {
  const done = spawnSync(command, args, { cwd, encoding: "utf8", timeout, env: withoutNpm() });
  return { status: done.status, stdout: done.stdout, text: `${done.stdout}${done.stderr}${done.error ?? ""}` };
}

/** Under `npm test` npm's own variables would steer the npm that is tested. */
function withoutNpm(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_(?!config_registry)/i.test(name)));
}

beforeAll(async () => {
  const packed = run("npm", ["pack", "--ignore-scripts", "--silent", "--pack-destination", folder], ROOT);
  if (packed.status !== 0) throw new Error(`npm pack failed:\n${packed.text}`);
  tarball = join(folder, packed.stdout.trim());
  await writeFile(join(folder, "package.json"), '{"name":"empty","private":true,"type":"module"}');
  const flags = ["--prefer-offline", "--no-audit", "--no-fund", "--fetch-retries", "0", "--fetch-timeout", "10000"];
  const installed = run("npm", ["install", ...flags, tarball], folder);
  if (installed.status !== 0) {
    why = `npm could not install the package's dependencies: ${installed.text.trim().split("\n").at(-1) ?? ""}`;
    process.stderr.write(`The installed package is not tried: ${why}\n`);
  }
}, 180_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("the tarball", () => {
  it("holds what runs and what is read, and none of the build's own files", () => {
    const names = run("tar", ["tzf", tarball], folder).stdout.trim().split("\n");
    for (const name of [
      "dist/cli/bin.js",
      "dist/main.js",
      "dist/client/index.d.ts",
      "dist/store/redis/commit.lua",
      "proto/toolcrib/v1/registry_service.proto",
      "README.md",
      "LICENSE",
    ]) {
      expect(names).toContain(`package/${name}`);
    }
    expect(names.filter((name) => /\.tsbuildinfo$|\.built$|^package\/(?:src|test|node_modules)\//.test(name))).toEqual(
      [],
    );
  });

  it("has types that every modern resolution finds", () => {
    const checked = run(join(ROOT, "node_modules/.bin/attw"), [tarball, "--profile", "esm-only", "--no-color"], folder);
    expect(checked.status, checked.text).toBe(0);
  });
});

describe("installed into an empty project", () => {
  it("has a command line", ({ skip }) => {
    if (why !== "") return skip(why);
    const help = run("npx", ["--no-install", "toolcrib", "--help"], folder);
    expect(help, help.text).toMatchObject({ status: 0 });
    for (const command of ["wrap", "register", "import", "ls", "get", "watch", "doctor", "top"]) {
      expect(help.stdout).toMatch(new RegExp(`^ {2}${command}\\b`, "m"));
    }
  });

  it("starts a registry with its embedded store", async ({ skip }) => {
    if (why !== "") return skip(why);
    const bin = join(folder, "node_modules/.bin/toolcrib");
    const free = ["--grpc-address", "127.0.0.1:0", "--ops-address", "127.0.0.1:0"];
    const child = spawn(bin, ["serve", ...free], {
      cwd: folder,
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...withoutNpm(), TOOLCRIB_HTTP_ADDRESS: "127.0.0.1:0" },
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    let text = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk: Buffer) => void (text += chunk.toString()));
    const up = await eventually(
      () => ({ address: /is up: gRPC (\S+?),/.exec(text)?.[1], gone: child.exitCode !== null }),
      ({ address, gone }) => address !== undefined || gone,
    );
    expect(up.address, text).toBeDefined();
    const listed = await eventually(
      () => run(bin, ["ls", "--registry", up.address ?? ""], folder),
      ({ status }) => status === 0,
    );
    expect(listed.stdout).toBe("No tools.\n");
    child.kill("SIGTERM");
    expect(await once(child, "exit")).toEqual([0, null]);
  });

  it("can be imported, with types", async ({ skip }) => {
    if (why !== "") return skip(why);
    const source = `
      import { createFollower, DEFAULT_ADDRESS, RegistryConnection, RegistryError, parseTarget } from "toolcrib/client";
      import type { FollowerState } from "toolcrib/client";
      import type { RegistrationEvent } from "toolcrib/registrar";
      import { registerServer } from "toolcrib/registrar";
      const registry = new RegistryConnection(parseTarget("127.0.0.1:1"));
      const failed: unknown = await registry.getStubs({ namespace: "" }, { timeoutMs: 5_000 }).then((page) => page.stubs[0]?.toolId, (error: unknown) => error);
      registry.close();
      const follower = createFollower({ targets: ["127.0.0.1:1"] });
      const kind: FollowerState["kind"] = follower.state.kind;
      const title: string | undefined = follower.stub("a/b")?.title;
      const onEvent = (event: RegistrationEvent): string => event.type;
      console.log(DEFAULT_ADDRESS, failed instanceof RegistryError ? failed.code : failed, typeof onEvent, typeof registerServer, kind, title);
      // @ts-expect-error A namespace is a text: the types are there, and are no \`any\`.
      void (() => registry.getStubs({ namespace: 1 }));
    `;
    await writeFile(join(folder, "use.ts"), source);
    const flags = "--module nodenext --moduleResolution nodenext --target es2022 --strict --outDir out".split(" ");
    const types = ["--typeRoots", join(ROOT, "node_modules/@types"), "--types", "node"];
    const compiled = run(join(ROOT, "node_modules/.bin/tsc"), [...flags, ...types, "use.ts"], folder);
    expect(compiled.status, compiled.text).toBe(0);
    const ran = run(process.execPath, ["out/use.js"], folder);
    expect(ran.stdout, ran.text).toBe("127.0.0.1:7850 UNAVAILABLE function function stopped undefined\n");
  });

  it("does without the agent's optional peers, and says so", ({ skip }) => {
    if (why !== "") return skip(why);
    if (existsSync(join(tmpdir(), "node_modules"))) return skip("the folder of temporary files lends its packages to all projects in it");
    const program = `
      import { connect, gptTokenizer } from "toolcrib/client";
      const tokenizer = await gptTokenizer();
      const agent = connect({ targets: "127.0.0.1:1" });
      const outcome = await agent.call("some/tool");
      await agent.close();
      console.log(tokenizer.name, tokenizer.count("12345678"), outcome.kind, outcome.errorKind);
      const { sdkDialer } = await import("toolcrib/client");
      await sdkDialer()({ serverId: "some", url: "http://127.0.0.1:1/mcp", transport: "streamable-http" }).catch((error) => console.log(error.message));
    `;
    const ran = run(process.execPath, ["--input-type=module", "-e", program], folder);
    expect(ran.stdout, ran.text).toBe(
      "bytes/4 2 failed UNREACHABLE\n" +
        "calling tools needs @modelcontextprotocol/client: install it (npm install @modelcontextprotocol/client), or give connect() an mcp dialer of your own\n",
    );
  });
});
