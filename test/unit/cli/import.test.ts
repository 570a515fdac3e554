import { describe, expect, it } from "vitest";
import { readConfigFile } from "../../../src/cli/import/config-file.js";
import { planTasks } from "../../../src/cli/import/plan.js";
import { expand } from "../../../src/cli/import/placeholders.js";
import { planHeaders } from "../../../src/cli/import/secret-header.js";
import { serverIdsFor } from "../../../src/cli/import/server-ids.js";
import { SLUG_PATTERN } from "../../../src/domain/ids.js";

/** As it is written in such files. */
const place = (inside: string): string => `\${${inside}}`;

describe("names", () => {
  it("become valid server_ids, each its own, and a name that is one already keeps it", () => {
    const names = [
      "GitHub (work)",
      "github-work",
      "GitHub, work!",
      "Crème Brûlée",
      "__x",
      "工具",
      "道具",
      "a".repeat(80),
      `${"a".repeat(79)}b`,
    ];
    const ids = serverIdsFor(names);
    expect(ids.map(({ serverId }) => serverId).slice(0, 7)).toEqual([
      ...["github-work-2", "github-work", "github-work-3", "creme-brulee", "x", "server", "server-2"],
    ]);
    expect(new Set(ids.map(({ serverId }) => serverId)).size).toBe(names.length);
    for (const { serverId } of ids) expect(serverId).toMatch(SLUG_PATTERN);
    expect(ids[0]?.note).toBe('github-work is the server_id of "github-work"');
    expect(ids[1]?.note).toBe("");
  });
});

describe("placeholders", () => {
  it("are filled from variables, and all that is missing is told by name", () => {
    const env = { TOKEN: "t", API_KEY: "k" };
    expect(expand(`${place("env:TOKEN")}/${place("API_KEY")}/${place("NONE:-d:e")}`, env)).toEqual({
      ok: true,
      text: "t/k/d:e",
    });
    expect(expand(place("input:api-key"), env)).toEqual({ ok: true, text: "k" });
    expect(expand(`${place("env:A")}${place("input:b c")}${place("workspaceFolder")}`, env)).toEqual({
      ok: false,
      why: [
        "the variable A is not set",
        'the editor would ask for "b c": set B_C instead',
        `${place("workspaceFolder")} is known to the editor alone: write its value in the file`,
      ],
    });
  });
});

describe("headers", () => {
  it("yield one credential, Authorization first; the others are named", () => {
    const { secret, notes } = planHeaders({
      "X-Api-Key": "x",
      Authorization: `Bearer ${place("env:GITHUB_TOKEN")}`,
      Accept: "y",
    });
    expect(secret).toEqual({
      header: "Authorization",
      prefix: "Bearer ",
      source: { kind: "env", name: "GITHUB_TOKEN" },
    });
    expect(notes).toEqual([expect.stringContaining("X-Api-Key is not sent") as string]);
    expect(planHeaders({ "X-Api-Key": "abc" }).secret).toEqual({
      header: "X-Api-Key",
      prefix: "",
      source: { kind: "literal", value: "abc" },
    });
    expect(planHeaders({ "X-Region": "eu" })).toEqual({
      secret: undefined,
      notes: [expect.stringContaining("X-Region") as string],
    });
    const odd = planHeaders({ Authorization: `${place("env:A")}:${place("env:B")}` });
    expect(odd).toEqual({ secret: undefined, notes: [expect.stringContaining("define it by hand") as string] });
  });
});

describe("a client's file", () => {
  it("is read with comments, in each of its shapes, and what cannot be used says why", () => {
    const read = (text: string) => readConfigFile(text, "mcp.json");
    expect(read('{"servers": {"a": {"type": "sse", "url": "http://h/x"},},} // end')).toEqual([
      { kind: "url", name: "a", url: "http://h/x", sse: true, headers: {} },
    ]);
    expect(read('{"mcp": {"servers": {"a": {"command": "c"}}}}')[0]).toMatchObject({
      kind: "command",
      args: [],
      env: {},
    });
    const bad = {
      a: 1,
      b: {},
      c: { command: 7, args: "x", env: { a: [] } },
      d: { command: "x", url: "y" },
      e: { command: "x", disabled: true },
    };
    expect(
      read(JSON.stringify({ mcpServers: bad })).map((entry) => (entry.kind === "unusable" ? entry.why : "")),
    ).toEqual([
      "is no object",
      "has neither a command nor a URL",
      "command is no text; args is no list of texts; env is no object of texts",
      "has both a command and a URL",
      "is switched off in the file",
    ]);
    expect(() => read('{"mcpServers": {\n "a": }')).toThrow("mcp.json:2 is not JSON: ValueExpected");
    expect(() => read("[]")).toThrow("holds no servers");
  });

  it("never puts a variable where every reader would see its value", () => {
    const entries = readConfigFile(
      JSON.stringify({
        mcpServers: {
          a: { url: `https://h.example.com/${place("env:KEY")}/mcp` },
          b: { url: `https://${place("env:HOST")}/mcp` },
        },
      }),
      "f",
    );
    const tasks = planTasks(entries, entries, { KEY: "planted", HOST: "h.example.com" });
    expect(tasks.map(({ kind }) => kind)).toEqual(["skip", "register"]);
    expect(JSON.stringify(tasks)).not.toContain("planted");
  });
});
