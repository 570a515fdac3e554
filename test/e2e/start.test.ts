/** A registry as its operator meets it: started, misconfigured, killed, stopped. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { status } from "@grpc/grpc-js";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { detailsOf, refusalOf } from "../support/details.js";
import {
  declared,
  type RegistryProcess,
  RemoteRegistry,
  type RemoteWatch,
  startRegistry,
  temporaryFolder,
} from "../support/registry.js";
import { eventually } from "../support/upstream.js";

// Whole processes on a machine that may be slow; each wait has its own end.
vi.setConfig({ testTimeout: 60_000 });

const MAIN = fileURLToPath(new URL("../../dist/main.js", import.meta.url));
const tool = (name: string, description = `Does ${name}`) => ({ name, description, inputSchema: { type: "object" } });

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A start that has to fail; killed when it does not. */
async function runToEnd(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ended> {
  const child: ChildProcess = spawn(process.execPath, [MAIN, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { TOOLCRIB_HTTP_ADDRESS: "127.0.0.1:0", ...process.env, ...env },
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let stdout = "";
  let stderr = "";
  child.stdout?.on("data", (chunk: Buffer) => void (stdout += chunk.toString()));
  child.stderr?.on("data", (chunk: Buffer) => void (stderr += chunk.toString()));
  const [code] = (await once(child, "close")) as [number | null];
  return { code, stdout, stderr };
}

const sentences = (text: string): string[] => text.split("\n").filter((line) => line.startsWith("toolcrib: "));

const free = ["--grpc-address", "127.0.0.1:0", "--http-address", "127.0.0.1:0", "--ops-address", "127.0.0.1:0"];

describe("a start", () => {
  it("prints three lines to paste next, and serves livez, readyz and metrics", async () => {
    const registry = await startRegistry();
    const pasted = registry
      .output()
      .split("\n")
      .filter((line) => line.startsWith("  npx toolcrib "));
    expect(pasted).toHaveLength(3);
    for (const line of pasted) expect(line).toContain(`--registry ${registry.grpc}`);
    expect(await (await fetch(`${registry.ops}/livez`)).text()).toContain("live");
    expect(await (await fetch(`${registry.ops}/metrics`)).text()).toMatch(/^toolcrib_/m);
  });

  it("takes settings by variable, and a flag beats its variable", async () => {
    const folder = await temporaryFolder();
    const env = {
      TOOLCRIB_GRPC_ADDRESS: "127.0.0.1:0",
      TOOLCRIB_HTTP_ADDRESS: "127.0.0.1:0",
      TOOLCRIB_OPS_ADDRESS: "127.0.0.1:0",
      TOOLCRIB_STORE: "embedded",
      TOOLCRIB_DATA_DIR: join(folder, "by-variable"),
      TOOLCRIB_LOG_LEVEL: "noise",
    };
    const child = spawn(process.execPath, [MAIN, "--log-level", "error"], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...env },
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    let text = "";
    child.stdout.on("data", (chunk: Buffer) => void (text += chunk.toString()));
    await eventually(
      () => text,
      (t) => t.includes("is up: gRPC 127.0.0.1:"),
    );
    expect(text).toContain(`embedded in ${join(folder, "by-variable")}`);
    expect(text.split("\n").filter((line) => line.startsWith("{"))).toEqual([]);
    child.kill("SIGTERM");
    expect(await once(child, "exit")).toEqual([0, null]);
  });

  it("prints its version", async () => {
    for (const flag of ["--version", "-V"])
      expect(await runToEnd([flag])).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/), stderr: "" });
  });

  it("tells everything that is wrong with its settings at once, and exits 1", async () => {
    const args = ["--grpc-address", "nonsense", "--store", "postgres://u:secret@db/x", "--surprise", "1"];
    const ended = await runToEnd(args, { TOOLCRIB_MAX_WATCHERS: "-3", TOOLCRIB_GRACE: "soon", TOOLCRIB_NO_SUCH: "1" });
    expect(ended.code).toBe(1);
    const told = sentences(ended.stderr);
    for (const part of [
      "--grpc-address",
      "--store",
      "--surprise",
      "TOOLCRIB_MAX_WATCHERS",
      "TOOLCRIB_GRACE",
      "TOOLCRIB_NO_SUCH",
    ]) {
      expect(
        told.filter((line) => line.includes(part)),
        part,
      ).toHaveLength(1);
    }
    expect(ended.stdout + ended.stderr).not.toContain("secret");
    expect(ended.stderr).not.toMatch(/\n\s+at /);
  });

  it("tells what is wrong with files beside what is wrong with values, all at once", async () => {
    const folder = await temporaryFolder();
    const [tokens, credentials, cert] = ["tokens.json", "credentials.json", "cert.pem"].map((name) => join(folder, name));
    await writeFile(tokens ?? "", "{");
    await writeFile(cert ?? "", "no PEM");
    const files = [
      ...["--tokens-file", tokens ?? "", "--upstream-credentials", credentials ?? "", "--tls-cert", cert ?? "", "--tls-key", cert ?? ""],
      ...["--jwt-jwks", join(folder, "keys.json"), "--jwt-issuer", "i", "--jwt-audience", "a"],
    ];
    for (const more of [["--grace", "soon"], []]) {
      const ended = await runToEnd([...free, ...files, ...more]);
      expect(ended).toMatchObject({ code: 1, stdout: "" });
      const told = sentences(ended.stderr);
      expect(told).toHaveLength(4 + more.length / 2);
      for (const part of ["tokens.json cannot be used: it is not JSON", "credentials.json: ENOENT", "keys.json: ENOENT", "TLS material"])
        expect(told.filter((line) => line.includes(part)), part).toHaveLength(1);
    }
  });

  it("refuses an address that other machines reach, unless told that this is meant", async () => {
    const ended = await runToEnd(["--grpc-address", "0.0.0.0:0", "--store", "memory"]);
    expect(ended.code).toBe(1);
    expect(sentences(ended.stderr)).toHaveLength(1);
    expect(ended.stderr).toContain("--insecure");
  });
});

describe("a start that cannot be", () => {
  /** One sentence on stderr, exit 1, no stack, and no welcome. */
  function expectOneSentence(ended: Ended, ...parts: readonly string[]): void {
    expect(ended).toMatchObject({ code: 1 });
    expect(sentences(ended.stderr)).toHaveLength(1);
    for (const part of parts) expect(ended.stderr).toContain(part);
    expect(ended.stdout + ended.stderr).not.toMatch(/\n\s+at /);
    expect(ended.stdout).not.toContain("is up");
  }

  it("says that a port is taken, for every listener", async () => {
    const other = await startRegistry({ store: "memory" });
    expectOneSentence(
      await runToEnd(["--grpc-address", other.grpc, "--ops-address", "127.0.0.1:0", "--store", "memory"]),
      other.grpc,
      "--grpc-address",
    );
    const ops = other.ops.replace("http://", "");
    expectOneSentence(
      await runToEnd(["--grpc-address", "127.0.0.1:0", "--ops-address", ops, "--store", "memory"]),
      ops,
      "--ops-address",
    );
    const http = other.http.replace("http://", "");
    expectOneSentence(
      await runToEnd([
        "--grpc-address",
        "127.0.0.1:0",
        "--http-address",
        http,
        "--ops-address",
        "127.0.0.1:0",
        "--store",
        "memory",
      ]),
      http,
      "--http-address",
    );
  });

  it("says everything that a second registry finds taken, and how to run one", async () => {
    const other = await startRegistry();
    const [http, ops] = [other.http, other.ops].map((url) => url.replace("http://", ""));
    const same = ["--grpc-address", other.grpc, "--http-address", http ?? "", "--ops-address", ops ?? ""];
    const { code, stderr } = await runToEnd([...same, "--data-dir", other.dataDir]);
    expect(code).toBe(1);
    const told = sentences(stderr);
    expect(told).toHaveLength(5);
    for (const part of [
      `the data folder ${other.dataDir} is in use by another registry`,
      `The gRPC address ${other.grpc} is taken`,
      `The HTTP address ${http} is taken`,
      `The ops address ${ops} is taken`,
      "To run a second registry beside the first, give it a folder and ports of its own: --data-dir",
    ])
      expect(told.filter((line) => line.includes(part)), part).toHaveLength(1);
  });

  it("says that another process holds the data folder", async () => {
    const other = await startRegistry();
    expectOneSentence(await runToEnd([...free, "--data-dir", other.dataDir]), other.dataDir);
  });

  it("says that the data folder is no folder", async () => {
    const file = join(await temporaryFolder(), "file");
    await writeFile(file, "not a folder");
    expectOneSentence(await runToEnd([...free, "--data-dir", file]), file);
    expectOneSentence(await runToEnd([...free, "--data-dir", join(file, "below")]), file);
  });

  it("says that the data folder cannot be read", async () => {
    const damaged = await temporaryFolder();
    // Permissions do not stop root, so a folder takes the place of a file that the store has to read.
    await mkdir(join(damaged, "store", "CURRENT"), { recursive: true });
    expectOneSentence(await runToEnd([...free, "--data-dir", damaged]), damaged);
  });

  it("says that a host cannot be listened on", async () => {
    expectOneSentence(
      await runToEnd([
        "--grpc-address",
        "203.0.113.1:7850",
        "--insecure",
        "--ops-address",
        "127.0.0.1:0",
        "--store",
        "memory",
      ]),
      "203.0.113.1",
    );
  });
});

describe("kill -9 of the embedded registry", () => {
  const ROUNDS = 4;

  /** Registers without pause until the registry is gone; answers the acknowledged names. */
  async function registerUntilGone(
    registry: RegistryProcess,
    round: number,
    acknowledged: Map<string, string>,
  ): Promise<void> {
    const client = new RemoteRegistry(registry.grpc);
    let n = 0;
    const lane = async (): Promise<void> => {
      for (;;) {
        const id = `s${round}-${n++}`;
        try {
          const answer = await client.call(
            "register",
            declared(id, [tool("a", id), tool("b", id)], { instanceId: "instance-1", leaseTtl: { seconds: 3600 } }),
          );
          acknowledged.set(id, answer.tools[0].digest);
        } catch {
          return;
        }
      }
    };
    const before = acknowledged.size;
    const lanes = [lane(), lane(), lane(), lane()];
    await eventually(
      () => acknowledged.size - before,
      (done) => done >= 15 + 10 * round,
    );
    await registry.kill();
    await Promise.all(lanes);
  }

  it("in mid-Register loses nothing that was acknowledged, and watchers resume with their token", {
    timeout: 120_000,
  }, async () => {
    const dataDir = await temporaryFolder();
    const acknowledged = new Map<string, string>();
    const heard: string[] = [];
    let token = "";
    for (let round = 0; round < ROUNDS; round++) {
      const registry = await startRegistry({ dataDir });
      const client = new RemoteRegistry(registry.grpc);
      const watch: RemoteWatch = client.watch(token === "" ? {} : { resumeToken: token });
      if (token === "") await watch.ready();
      else
        await eventually(
          () => watch.bookmarks,
          (n) => n > 0,
        );
      await registerUntilGone(registry, round, acknowledged);
      await eventually(
        () => watch.error?.code,
        (code) => code === status.UNAVAILABLE,
      );
      heard.push(...watch.told);
      token = watch.token;
      expect(token).not.toBe("");
    }
    const last = await startRegistry({ dataDir });
    const client = new RemoteRegistry(last.grpc);
    const watch = client.watch({ resumeToken: token });
    await eventually(
      () => watch.bookmarks,
      (n) => n > 0,
    );
    heard.push(...watch.told);

    const listed = await client.toolIds();
    for (const [id, digest] of acknowledged) {
      expect(listed).toContain(`${id}/a`);
      const { schema } = await client.call("getFullSchema", { toolId: `${id}/b` });
      expect(JSON.parse(schema.definition.toString())).toEqual(tool("b", id));
      expect((await client.call("getFullSchema", { toolId: `${id}/a` })).schema.digest).toBe(digest);
    }
    expect(acknowledged.size).toBeGreaterThanOrEqual(ROUNDS * 15);
    // Each tool was told once over all restarts: no gap, no duplicate.
    expect(heard.sort()).toEqual(listed.map((id) => `REGISTERED ${id}`).sort());
  });
});

describe("SIGTERM", () => {
  it("with idle clients and open watches exits 0, far within the grace, and the watches hear why", async () => {
    const registry = await startRegistry({ args: ["--grace", "600000"] });
    const clients = [new RemoteRegistry(registry.grpc), new RemoteRegistry(registry.grpc)];
    for (const client of clients) await client.call("getStubs");
    const watches = clients.map((client) => client.watch());
    for (const watch of watches) await watch.ready();
    const silent = connect(Number(registry.grpc.split(":")[1]), "127.0.0.1");
    silent.on("error", () => {});
    await once(silent, "connect");
    const kept = await fetch(`${registry.ops}/livez`, { headers: { connection: "keep-alive" } });
    await kept.text();

    expect(await registry.stop()).toBe(0);
    for (const watch of watches) {
      await eventually(
        () => watch.error,
        (error) => error !== undefined,
      );
      expect(detailsOf(watch.error as NonNullable<typeof watch.error>)).toMatchObject({
        code: status.UNAVAILABLE,
        reason: "DRAINING",
      });
    }
    silent.destroy();
    expect(registry.logs().some((line) => line["msg"] === "stopped")).toBe(true);
  });

  it("with a watcher that never reads ends at the grace at the latest", async () => {
    const registry = await startRegistry({ store: "memory", args: ["--grace", "1000"] });
    const client = new RemoteRegistry(registry.grpc);
    const big = Array.from({ length: 400 }, (_, i) => tool(`t${i}`, "x".repeat(590)));
    for (let s = 0; s < 4; s++) await client.call("register", declared(`big-${s}`, big));
    const watch = client.watch();
    await once(watch.stream, "data");
    watch.stream.pause();
    expect(await registry.stop()).toBe(0);
  });

  it("keeps what was registered for the next start", async () => {
    const first = await startRegistry();
    await new RemoteRegistry(first.grpc).call("register", declared("kept", [tool("a")]));
    expect(await first.stop()).toBe(0);
    const second = await startRegistry({ dataDir: first.dataDir });
    const client = new RemoteRegistry(second.grpc);
    expect(await client.toolIds()).toEqual(["kept/a"]);
    expect(await refusalOf(client.call("getFullSchema", { toolId: "kept/b" }))).toMatchObject({
      code: status.NOT_FOUND,
    });
  });
});
