/** Watchers that do not read, and names that two servers share. */
import { status } from "@grpc/grpc-js";
import { describe, expect, it, vi } from "vitest";
import { detailsOf, refusalOf } from "../support/details.js";
import { resume, toldOf } from "../support/pair.js";
import {
  declared,
  RemoteRegistry,
  type RemoteWatch,
  type RegistryProcess,
  startRegistry,
} from "../support/registry.js";
import { eventually } from "../support/upstream.js";

// Whole processes on a machine that may be slow; each wait has its own end.
vi.setConfig({ testTimeout: 60_000 });

const tool = (name: string, description = `Does ${name}`) => ({ name, description, inputSchema: { type: "object" } });

/** A set whose change is about 170 KB of events. */
const bulky = (round: number): object[] =>
  Array.from({ length: 250 }, (_, i) => tool(`t${i}`, `${round} ${"x".repeat(550)}`));

async function metric(registry: RegistryProcess, pattern: RegExp): Promise<number> {
  const text = await (await fetch(`${registry.ops}/metrics`)).text();
  return Number(pattern.exec(text)?.[1] ?? 0);
}

/** A watch that has its snapshot and then stops reading, as a stuck process would. */
async function stuckWatch(api: RemoteRegistry): Promise<RemoteWatch> {
  const watch = api.watch();
  await watch.ready();
  watch.stream.pause();
  return watch;
}

describe("a watcher that stops reading", () => {
  it("disturbs nobody, and catches up whole and in order when it reads again", { timeout: 60_000 }, async () => {
    const registry = await startRegistry({ store: "memory" });
    // Connections of their own: what one does not take must not hold the other's bytes.
    const [writer, slow, quick] = [0, 1, 2].map(() => new RemoteRegistry(registry.grpc)) as [
      RemoteRegistry,
      RemoteRegistry,
      RemoteRegistry,
    ];
    await writer.call("register", declared("bulk", bulky(0)));
    const stuck = await stuckWatch(slow);
    const other = quick.watch();
    await other.ready();
    const rounds = 20;
    for (let round = 1; round <= rounds; round++) await writer.call("register", declared("bulk", bulky(round)));
    await eventually(
      () => other.events.length,
      (n) => n === rounds * 250,
    );
    await eventually(
      () => metric(registry, /^toolcrib_watchers\{state="lagging"\} (\d+)/m),
      (n) => n === 1,
    );
    expect(stuck.events.length).toBeLessThan(rounds * 250);

    stuck.stream.resume();
    await eventually(
      () => stuck.events.length,
      (n) => n === rounds * 250,
    );
    expect(stuck.told).toEqual(other.told);
    expect(stuck.events.map((e) => e.newDigest)).toEqual(other.events.map((e) => e.newDigest));
    expect(stuck.error).toBeUndefined();
  });

  it("for longer than the history is kept hears WATCHER_TOO_SLOW and its last token, which asks for a relist", {
    timeout: 120_000,
  }, async () => {
    const registry = await startRegistry({ store: "memory" });
    const [writer, slow, quick] = [0, 1, 2].map(() => new RemoteRegistry(registry.grpc)) as [
      RemoteRegistry,
      RemoteRegistry,
      RemoteRegistry,
    ];
    await writer.call("register", declared("bulk", bulky(0)));
    const stuck = await stuckWatch(slow);
    const other = quick.watch({ filter: { namePrefix: "t24" } });
    await other.ready();
    const ended = /^toolcrib_watch_ended_total\{[^}]*WATCHER_TOO_SLOW[^}]*\} (\d+)/m;
    let rounds = 0;
    await eventually(
      async () => {
        for (let i = 0; i < 20; i++) await writer.call("register", declared("bulk", bulky(++rounds)));
        return metric(registry, ended);
      },
      (n) => n === 1,
      90_000,
    );
    stuck.stream.resume();
    await eventually(
      () => stuck.error,
      (error) => error !== undefined,
    );
    const told = detailsOf(stuck.error as NonNullable<typeof stuck.error>);
    expect(told).toMatchObject({ code: status.RESOURCE_EXHAUSTED, reason: "WATCHER_TOO_SLOW" });
    expect(told.metadata["resume_token"]).toBe(stuck.token);
    expect(await refusalOf(resume(slow, stuck.token))).toMatchObject({
      code: status.OUT_OF_RANGE,
      reason: "RELIST_REQUIRED",
      metadata: { cause: "compacted" },
    });
    // t24 and t240 to t249.
    await eventually(
      () => other.events.length,
      (n) => n === rounds * 11,
    );
    expect(other.error).toBeUndefined();
    const again = slow.watch();
    await again.ready();
    expect(again.stubs).toHaveLength(250);
  });

  it("and shares its connection with others holds up only itself", async () => {
    const registry = await startRegistry({ store: "memory" });
    const api = new RemoteRegistry(registry.grpc);
    await api.call("register", declared("bulk", bulky(0)));
    const stuck = await stuckWatch(api);
    const other = api.watch();
    await other.ready();
    for (let round = 1; round <= 3; round++) await api.call("register", declared("bulk", bulky(round)));
    await eventually(
      () => other.events.length,
      (n) => n === 750,
    );
    expect(await api.toolIds()).toHaveLength(250);
    stuck.stream.resume();
    await eventually(
      () => stuck.events.length,
      (n) => n === 750,
    );
  });
});

describe("two servers with the same tool name", () => {
  it("are two tools: listed, loaded, changed and removed each by itself", async () => {
    const registry = await startRegistry({ store: "memory" });
    const api = new RemoteRegistry(registry.grpc);
    const watch = api.watch();
    await watch.ready();
    await api.call("register", declared("one", [tool("search", "In one.")]));
    await api.call("register", declared("two", [tool("search", "In two.")]));
    await api.call("register", declared("twin", [tool("search", "In two.")]));
    expect(await api.toolIds({ filter: { namePrefix: "search" } })).toEqual([
      "one/search",
      "twin/search",
      "two/search",
    ]);
    const definitionOf = async (toolId: string): Promise<{ description: string }> =>
      JSON.parse((await api.call("getFullSchema", { toolId })).schema.definition.toString());
    expect((await definitionOf("one/search")).description).toBe("In one.");
    expect((await definitionOf("two/search")).description).toBe("In two.");

    await api.call("register", declared("one", [tool("search", "Changed.")]));
    await api.call("deregister", { serverId: "two" });
    expect((await definitionOf("one/search")).description).toBe("Changed.");
    // The same definition under the same digest, still offered by another server.
    expect((await definitionOf("twin/search")).description).toBe("In two.");
    expect(await refusalOf(api.call("getFullSchema", { toolId: "two/search" }))).toMatchObject({
      code: status.NOT_FOUND,
    });
    await eventually(
      () => watch.events.length,
      (n) => n === 5,
    );
    expect(toldOf(watch, "one")).toEqual(["REGISTERED one/search", "SCHEMA_INVALIDATED one/search"]);
    expect(toldOf(watch, "two")).toEqual(["REGISTERED two/search", "DEREGISTERED two/search"]);
    expect(toldOf(watch, "twin")).toEqual(["REGISTERED twin/search"]);
  });
});
