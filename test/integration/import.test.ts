/** A desktop client's file, taken over by a real registry. */
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { BIN, toolcrib, toolcribDone } from "../support/cli.js";
import { RemoteRegistry, startRegistry, temporaryFolder } from "../support/registry.js";
import { corpusFile, startFixture } from "../support/servers.js";
import { until } from "../support/small-registry.js";

/** As it is written in such files. */
const place = (inside: string): string => `\${${inside}}`;

describe("import", () => {
  const SECRET = "planted-4f1d9c";

  async function configFile(servers: object): Promise<{ path: string; credentials: string }> {
    const folder = await temporaryFolder();
    const path = join(folder, "mcp.json");
    writeFileSync(path, `{ // as a client wrote it\n"mcpServers": ${JSON.stringify(servers)}, }`);
    return { path, credentials: join(folder, "keys", "credentials.json") };
  }

  it("registers URLs, makes credentials of headers by consent alone, and never prints a value", {
    timeout: 60_000,
  }, async () => {
    const { grpc } = await startRegistry({ store: "memory" });
    const git = await startFixture("corpus-server.mjs", [corpusFile("git")]);
    const { path, credentials } = await configFile({
      "Git Tools": { url: git.url, headers: { Authorization: `Bearer ${SECRET}`, "X-Region": "eu" } },
      query: { url: `https://tools.example.com/mcp?api_key=${SECRET}` },
      needs: { command: "node", args: [place("input:the-key"), place("workspaceFolder")] },
      off: { command: "node", disabled: true },
    });
    const all = ["--registry", grpc, "--credentials-file", credentials];
    const dry = await toolcribDone(["import", path, "--dry-run", ...all]);
    expect(dry.stdout).toMatch(/^Git Tools +git-tools +would register/m);
    expect(await new RemoteRegistry(grpc).toolIds()).toEqual([]);

    expect(dry).toMatchObject({ stderr: "", stdout: expect.stringContaining("would become the credential git-tools, if you agree") });
    const blind = await toolcribDone(["import", path, "--dry-run", "--registry", grpc]);
    expect(blind.stdout).toContain("its header Authorization would be left out");
    expect(blind.stderr).toMatch(/^Headers that hold secrets would be left out.*: Authorization of Git Tools\. To have them sent, give --credentials-file/);
    const left = await toolcribDone(["import", path, "--registry", grpc, "--only", "Git Tools"]);
    expect(left.stderr).toMatch(/^Headers that hold secrets are left out/);
    expect(left.stdout).toContain("registered without its header Authorization: name the registry's --upstream-credentials file");

    const careful = await toolcribDone(["import", path, ...all]);
    expect(careful, careful.stderr).toMatchObject({ code: 0 });
    expect(careful.stdout).toMatch(/^Git Tools +git-tools +registered +\d+$/m);
    expect(careful.stdout).toContain("registered without its header Authorization: nobody agreed");
    expect(() => readFileSync(credentials)).toThrow(/ENOENT/);

    const agreed = await toolcribDone(["import", path, "--yes", "--only", "Git Tools", ...all]);
    expect(agreed.stdout).toContain("the credential git-tools was written to");
    const written = JSON.parse(readFileSync(credentials, "utf8")) as { credentials: object[] };
    const file = join(credentials, "..", "git-tools.secret");
    expect(written.credentials).toEqual([
      {
        name: "git-tools",
        namespaces: ["default"],
        header: "Authorization",
        prefix: "Bearer ",
        value: { file },
        hosts: ["127.0.0.1"],
      },
    ]);
    expect(readFileSync(file, "utf8")).toBe(SECRET);
    expect([credentials, file].map((name) => statSync(name).mode & 0o777)).toEqual([0o600, 0o600]);

    for (const { stdout, stderr } of [dry, blind, left, careful, agreed]) expect(stdout + stderr).not.toContain(SECRET);
    expect(careful.stdout).toContain('the editor would ask for "the-key": set THE_KEY instead');
    expect(careful.stdout).toContain(`${place("workspaceFolder")} is known to the editor alone`);
    expect(careful.stdout).toContain('query parameter "api_key"');
  });

  it("runs commands wrapped in one process, and takes them away with it", { timeout: 60_000 }, async () => {
    const { grpc } = await startRegistry({ store: "memory" });
    const sample = { command: process.execPath, args: [BIN, "sample"], env: { GIVEN: place("env:HOME") } };
    const { path } = await configFile({
      "Sample One": sample,
      "sample-one": sample,
      broken: { command: "no-such-command-here" },
    });
    const run = toolcrib(["import", path, "--registry", grpc], { TOOLCRIB_TOKEN: "" });
    await until(() => run.stderr().includes("2 servers run here"), "both servers");
    expect(run.stdout()).toMatch(/^Sample One +sample-one-2 +wrapped +\d+$/m);
    expect(run.stdout()).toContain("broken: cannot run no-such-command-here: no such command");
    const ids = await new RemoteRegistry(grpc).toolIds();
    expect(new Set(ids.map((id) => id.split("/")[0]))).toEqual(new Set(["sample-one", "sample-one-2"]));
    run.process.kill("SIGINT");
    expect(await run.exit).toEqual([1, null]); // One of them could not be run.
    expect(await new RemoteRegistry(grpc).toolIds()).toEqual([]);
  });
});
