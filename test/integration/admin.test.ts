/** An operator's commands against a real registry and real servers. */
import { describe, expect, it } from "vitest";
import { toolcribDone } from "../support/cli.js";
import { declared, RemoteRegistry, startRegistry } from "../support/registry.js";
import { corpusFile, startFixture } from "../support/servers.js";

const TOOLS = ["a", "b"].map((name) => ({ name, description: `Does ${name}`, inputSchema: { type: "object" } }));

describe("isolate, resume and refresh", () => {
  it("take a server out, put it back and have it listed, and say so", { timeout: 60_000 }, async () => {
    const { grpc, http } = await startRegistry();
    const remote = new RemoteRegistry(grpc);
    const run = (...args: string[]) => toolcribDone([...args, "--registry", grpc]);
    const git = await startFixture("corpus-server.mjs", [corpusFile("git")]);
    await run("register", "--id", "git", "--url", git.url, "--probe-interval", "1h", "--probe-fall", "5", "--probe-timeout", "20s");
    await remote.call("register", declared("billing", TOOLS));

    const { server: shown } = await remote.call("getServer", { serverId: "git" });
    expect(shown.instances[0].probe).toMatchObject({ interval: { seconds: 3_600 }, timeout: { seconds: 20 }, fall: 5, rise: 0, off: false });
    expect(await run("refresh", "git")).toMatchObject({
      code: 0,
      stdout: `git lists ${shown.toolCount} tools: nothing has changed.\n`,
    });
    const json = await run("refresh", "git", "--json");
    expect(JSON.parse(json.stdout)).toMatchObject({ listed: shown.toolCount, server: { serverId: "git" } });

    for (const id of ["git", "billing"]) {
      const done = await run("isolate", id, "--why", "it drops rows");
      expect(done, done.stderr).toMatchObject({ code: 0, stderr: "" });
      const count = id === "git" ? shown.toolCount : 2;
      expect(done.stdout).toMatch(
        new RegExp(`^${id} is isolated since \\S+ \\S+ UTC \\(\\d+s\\) by anonymous: it drops rows\\nIts ${count} tools are unavailable until \`toolcrib resume ${id}\`.\\n$`),
      );
    }
    const { stubs } = await remote.call("getStubs", {});
    expect(new Set(stubs.map((s: { availability: string }) => s.availability))).toEqual(new Set(["AVAILABILITY_UNAVAILABLE"]));
    const servers = (await run("servers")).stdout.trimEnd().split("\n");
    expect(servers.every((text) => text.length <= 100), servers.join("\n")).toBe(true);
    expect(servers[0]).toMatch(/^SERVER +TOOLS +STATE +WHY +NEXT +KEPT +RUNS +ENDPOINT$/);
    expect(servers[1]).toMatch(/^billing +2 +isolated \d+s +it drops rows +– +leased +1 +\(not dialled\)$/);
    expect(servers).toContainEqual(expect.stringMatching(/^ {2}git: isolated since .* by anonymous: it drops rows$/));
    expect(await run("refresh", "git")).toMatchObject({ code: 1, stderr: expect.stringContaining("toolcrib resume") as string });
    const top = await run("top", "--once");
    expect(top.stdout).toContain("servers 2: 0 up, 0 down, 2 isolated, 0 pending");

    expect((await run("resume", "billing")).stdout).toBe("billing is back: its 2 tools are available.\n");
    expect((await run("resume", "billing")).stdout).toBe("billing was not isolated: nothing to resume.\n");
    expect((await run("resume", "git")).stdout).toMatch(/^git is resumed: its \d+ tools are available once it answers; /);

    const back = async () => (await remote.call("getServer", { serverId: "git" })).server;
    await expect.poll(back, { timeout: 20_000 }).toMatchObject({ availability: "AVAILABILITY_AVAILABLE", breaker: "BREAKER_STATE_CLOSED" });

    expect(await run("isolate", "git")).toMatchObject({ code: 2, stderr: expect.stringContaining("--why") as string });
    expect(await run("isolate", "git", "--why", " ")).toMatchObject({ code: 1, stderr: expect.stringContaining("why: is empty") as string });
    expect(await run("resume", "nobody")).toMatchObject({ code: 1, stderr: expect.stringContaining("nobody") as string });
    expect(await run("register", "--id", "x", "--url", git.url, "--probe-fall", "11")).toMatchObject({ code: 1, stderr: expect.stringContaining("probe.fall") as string });
    expect(await run("register", "--id", "x", "--url", git.url, "--probe-rise", "many")).toMatchObject({ code: 2 });

    // What curl does, and where a person finds that there is such a thing.
    const answer = await fetch(`${http}/toolcrib.v1.AdminService/ResumeServer`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: '{"serverId":"billing"}',
    });
    expect(await answer.json()).toMatchObject({ server: { serverId: "billing", breaker: "BREAKER_STATE_CLOSED" } });
    expect(await (await fetch(http)).text()).toContain("POST /toolcrib.v1.AdminService/IsolateServer");
  });

  it("an isolation outlives a restart of the registry and a registration of the server", { timeout: 60_000 }, async () => {
    const first = await startRegistry();
    const git = await startFixture("corpus-server.mjs", [corpusFile("git")]);
    const at = (grpc: string, ...args: string[]) => toolcribDone([...args, "--registry", grpc]);
    await at(first.grpc, "register", "--id", "git", "--url", git.url, "--probe-interval", "2s");
    await at(first.grpc, "isolate", "git", "--why", "looks hacked", "--namespace", "default");
    await first.stop();
    const second = await startRegistry({ dataDir: first.dataDir });
    const remote = new RemoteRegistry(second.grpc);
    const { server } = await remote.call("getServer", { serverId: "git" });
    expect(server).toMatchObject({ availability: "AVAILABILITY_UNAVAILABLE", breakerDetail: { isolatedWhy: "looks hacked" } });
    await at(second.grpc, "register", "--id", "git", "--url", git.url);
    expect((await remote.call("getServer", { serverId: "git" })).server).toMatchObject({ breaker: "BREAKER_STATE_ISOLATED", availability: "AVAILABILITY_UNAVAILABLE" });
  });
});
