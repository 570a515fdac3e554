/** The Python quickstart as its readers run it: a venv, the pinned packages, generated code, a real registry. */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { RemoteRegistry, startRegistry, temporaryFolder } from "../support/registry.js";

const HERE = fileURLToPath(new URL("../../deploy/examples/python/", import.meta.url));
const REQUIREMENTS = join(HERE, "requirements.txt");

function run(command: string, args: readonly string[], env: Readonly<Record<string, string>> = {}, timeout = 120_000) {
  const done = spawnSync(command, args, { encoding: "utf8", timeout, env: { ...process.env, ...env } });
  return {
    status: done.status,
    stdout: done.stdout ?? "",
    text: `${done.stdout ?? ""}${done.stderr ?? ""}${done.error ?? ""}`,
  };
}

/** One venv for these requirements, kept between runs; a sentence where it cannot be made here. */
function venv(): { readonly python: string } | { readonly why: string } {
  const pins = createHash("sha256").update(readFileSync(REQUIREMENTS)).digest("hex").slice(0, 12);
  const folder = join(tmpdir(), `toolcrib-python-${process.getuid?.() ?? 0}-${pins}`);
  const python = join(folder, "bin/python");
  const installed = (): boolean =>
    existsSync(python) && run(python, ["-c", "import grpc, grpc_tools.protoc"]).status === 0;
  if (installed()) return { python };
  if (run("python3", ["-m", "venv", "--clear", folder]).status !== 0)
    return { why: "there is no python3 with venv here" };
  const pip = run(python, [
    "-m",
    "pip",
    "install",
    "--quiet",
    "--disable-pip-version-check",
    "--retries",
    "1",
    "--timeout",
    "10",
    "-r",
    REQUIREMENTS,
  ]);
  if (pip.status === 0 && installed()) return { python };
  return { why: `pip could not install grpcio: ${pip.text.trim().split("\n").at(-1) ?? ""}` };
}

describe("the Python quickstart", () => {
  it("registers, renews, lists, fetches, hears of a change and leaves", { timeout: 300_000 }, async ({ skip }) => {
    const made = venv();
    if ("why" in made) {
      process.stderr.write(`The Python quickstart is not run: ${made.why}\n`);
      return skip(made.why);
    }
    const generated = await temporaryFolder();
    const protoc = run(join(HERE, "generate.sh"), [generated], { PYTHON: made.python });
    expect(protoc, protoc.text).toMatchObject({ status: 0 });
    const registry = await startRegistry({ store: "memory" });
    const env = { TOOLCRIB_URL: registry.grpc, TOOLCRIB_GENERATED: generated, PYTHONDONTWRITEBYTECODE: "1" };
    const quickstart = run(made.python, [join(HERE, "quickstart.py")], env);
    expect(quickstart, quickstart.text).toMatchObject({ status: 0 });
    const lines = quickstart.stdout.trim().split("\n");
    expect(lines).toEqual([
      "registered 2 tools, lease of 30 s",
      "renewed: STATE_OK",
      "listed python-quickstart/add: Adds two numbers.",
      "listed python-quickstart/upper: Turns a text into capitals.",
      expect.stringMatching(/^fetched python-quickstart\/add: \d+ bytes, sha256:[0-9a-f]{12}$/),
      "heard EVENT_TYPE_SCHEMA_INVALIDATED of python-quickstart/upper",
      "deregistered: True",
    ]);
    expect(await new RemoteRegistry(registry.grpc).toolIds()).toEqual([]);
  });

  it("says in one line what is wrong when there is no registry", { timeout: 300_000 }, async ({ skip }) => {
    const made = venv();
    if ("why" in made) return skip(made.why);
    const generated = await temporaryFolder();
    expect(run(join(HERE, "generate.sh"), [generated], { PYTHON: made.python }).status).toBe(0);
    const env = { TOOLCRIB_URL: "127.0.0.1:1", TOOLCRIB_GENERATED: generated, PYTHONDONTWRITEBYTECODE: "1" };
    const quickstart = run(made.python, [join(HERE, "quickstart.py")], env);
    expect(quickstart.status).toBe(1);
    expect(quickstart.text).toMatch(/^UNAVAILABLE: /m);
    expect(quickstart.text).not.toContain("Traceback");
  });
});
