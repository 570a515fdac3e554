/** The README's commands for tokens and certificates, as printed: only ports differ, and what runs is this build. */
import { execFile, spawn } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it, onTestFinished } from "vitest";
import { BIN } from "../support/cli.js";
import { hasOpenssl } from "../support/identity.js";
import { temporaryFolder } from "../support/registry.js";
import { eventually } from "../support/upstream.js";

const run = promisify(execFile);
const MAIN = fileURLToPath(new URL("../../dist/main.js", import.meta.url));
const README = readFileSync(new URL("../../README.md", import.meta.url), "utf8");

/** The section's blocks of commands, each command whole. */
function blocks(): string[][] {
  const section = /### Identity\n([\s\S]*?)\n## /.exec(README)?.[1] ?? "";
  return [...section.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block = ""]) => block.trim().split(/(?<!\\)\n/));
}

/** Starts the registry of a block's last command, after the ones before it; answers where it is. */
async function startAsPrinted(folder: string, commands: readonly string[]): Promise<string> {
  const [start = "", ...before] = [...commands].reverse();
  await run("bash", ["-c", ["set -e", ...before.reverse().map(ours)].join("\n")], { cwd: folder });
  const free = "--http-address 127.0.0.1:0 --ops-address 127.0.0.1:0 --store memory";
  const command = start.replace("npm start --", `exec "${process.execPath}" "${MAIN}" ${free}`).replace(":7850", ":0");
  const registry = spawn("bash", ["-c", command], { cwd: folder, stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void registry.kill("SIGKILL"));
  let told = "";
  registry.stdout.on("data", (chunk: Buffer) => (told += chunk.toString()));
  const [, port] = await eventually(() => / is up: gRPC 0\.0\.0\.0:(\d+)/.exec(told) ?? [], (found) => found.length > 1);
  return `localhost:${port}`;
}

const ours = (command: string): string => command.replace("npx toolcrib", `"${process.execPath}" "${BIN}"`);

async function clientAsPrinted(folder: string, [command = ""]: readonly string[], address: string) {
  const here = ours(command.replace("localhost:7850", address));
  expect(here).toContain(`grpcs://${address}`);
  return run("bash", ["-c", here], { cwd: folder });
}

describe.skipIf(!hasOpenssl)("the README's commands for identity", () => {
  it("work as printed: tokens, then client certificates", { timeout: 60_000 }, async () => {
    const [tokens, byToken, certificates, byCertificate] = blocks();
    const folder = await temporaryFolder();
    const first = await startAsPrinted(folder, tokens ?? []);
    expect((await clientAsPrinted(folder, byToken ?? [], first)).stdout).toMatch(/^(0 tools|no tools)/i);
    expect(readFileSync(join(folder, "ops.token"), "utf8")).toMatch(/^tcrib_[\w-]{43}\n$/);
    for (const file of ["ops.token", "tokens.json", "key.pem"]) expect(statSync(join(folder, file)).mode & 0o077).toBe(0);
    const entries = JSON.parse(readFileSync(join(folder, "tokens.json"), "utf8")) as { tokens: { principal: string }[] };
    expect(entries.tokens.map(({ principal }) => principal)).toEqual(["ops", "billing"]);

    const second = await startAsPrinted(folder, certificates ?? []);
    expect((await clientAsPrinted(folder, byCertificate ?? [], second)).stdout).toMatch(/^(0 tools|no tools)/i);
    const stranger = clientAsPrinted(folder, (byToken ?? []).map((c) => c.replace("ops.token", "billing.token")), second);
    await expect(stranger).rejects.toMatchObject({ code: 1 });
  });
});

describe("token new --add", () => {
  it("adds to a tokens file, prints the token alone, and leaves what is no tokens file as it was", async () => {
    const folder = await temporaryFolder();
    const make = (file: string) => run(process.execPath, [BIN, "token", "new", "--principal", "ci", "--add", join(folder, file)]);
    const made = await make("tokens.json");
    expect(made.stdout).toMatch(/^tcrib_[\w-]{43}\n$/);
    expect(made.stderr).toContain(`Its entry, a hash of it, is in ${join(folder, "tokens.json")} now.`);
    expect(readFileSync(join(folder, "tokens.json"), "utf8")).not.toContain(made.stdout.trim());
    await run("bash", ["-c", `echo '{"x": 1}' > strange.json`], { cwd: folder });
    await expect(make("strange.json")).rejects.toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining('needs {"tokens": […]}') });
    expect(readFileSync(join(folder, "strange.json"), "utf8")).toBe('{"x": 1}\n');
  });
});
