/** The README's agent, as printed: run as a program of its own, and compiled. */
import { execFile } from "node:child_process";
import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { BIN, toolcrib } from "../support/cli.js";
import { RemoteRegistry, startRegistry, temporaryFolder } from "../support/registry.js";
import { eventually } from "../support/upstream.js";

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** The program between the README's marks. */
async function printed(): Promise<string> {
  const readme = await readFile(join(ROOT, "README.md"), "utf8");
  const [, program] = /<!-- agent -->\n```js\n([\s\S]*?)```\n<!-- \/agent -->/.exec(readme) ?? [];
  if (!program) throw new Error("the README has no agent between its marks");
  return program;
}

/** A folder in which `toolcrib` is installed. */
async function project(): Promise<string> {
  const folder = await temporaryFolder();
  await mkdir(join(folder, "node_modules"));
  await symlink(ROOT, join(folder, "node_modules/toolcrib"));
  await writeFile(join(folder, "package.json"), '{"private": true, "type": "module"}');
  return folder;
}

it("finds, injects, calls and reports, in ten lines", { timeout: 60_000 }, async () => {
  const registry = await startRegistry();
  toolcrib(["wrap", "--registry", registry.grpc, "--id", "sample", "--", process.execPath, BIN, "sample"]);
  const remote = new RemoteRegistry(registry.grpc);
  await eventually(() => remote.toolIds(), (ids) => ids.includes("sample/word_count"));
  const folder = await project();
  const program = await printed();
  expect(program.trim().split("\n").filter((line) => !line.startsWith("import") && line !== "").length).toBeLessThanOrEqual(10);
  await writeFile(join(folder, "agent.js"), program);
  const { stdout, stderr } = await run(process.execPath, ["agent.js"], { cwd: folder, env: { ...process.env, TOOLCRIB_URL: registry.grpc } });
  expect(stderr).toBe("");
  const [first = ""] = stdout.split(" {\n");
  const outcome = JSON.parse(first) as { result: { content: { text: string }[] } };
  expect(outcome).toMatchObject({ kind: "answered", toolId: "sample/word_count", success: true });
  expect(JSON.parse(outcome.result.content[0]?.text ?? "{}")).toMatchObject({ words: 3 });
  expect(stdout).toMatch(/counter: 'bytes\/4'/);
});

it("has types", { timeout: 60_000 }, async () => {
  const folder = await project();
  await writeFile(join(folder, "agent.ts"), await printed());
  const flags = "--module nodenext --moduleResolution nodenext --target es2022 --strict --noEmit --skipLibCheck --types node".split(" ");
  const types = ["--typeRoots", join(ROOT, "node_modules/@types")];
  const compiled = await run(join(ROOT, "node_modules/.bin/tsc"), [...flags, ...types, "agent.ts"], { cwd: folder }).catch((error) => error);
  expect(compiled.stdout).toBe("");
});
