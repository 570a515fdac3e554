/** What one replica takes, every replica finds, and nothing is found that is gone. */
import { describe, expect, inject, it } from "vitest";
import { startPair } from "../support/pair.js";
import { declared } from "../support/registry.js";

const films = (...names: string[]) =>
  declared("films", names.map((name) => ({ name, description: `Can ${name}`, inputSchema: { type: "object", properties: { timecode: { type: "string" } } } })));

describe.skipIf(inject("redisServer") === "")("FindTools on two replicas", () => {
  it("a tool is findable on both replicas, by its parameters too, and never after it is gone (P12)", { timeout: 60_000 }, async () => {
    const { a, b } = await startPair();
    const found = async (intent: string) =>
      Promise.all([a, b].map(async ({ api }) => (await api.call("findTools", { intent })).tools.map((t: any) => [t.stub.toolId, t.score])));
    const ids = async (intent: string) => (await found(intent)).map((answer) => answer.map(([id]: [string]) => id));

    const { revision } = await a.api.call("register", films("translate_subtitles", "cut_scene"));
    const { tools } = await b.api.call("findTools", { intent: "translate subtitles", minRevision: revision });
    expect(tools[0].stub.toolId).toBe("films/translate_subtitles");
    await expect.poll(() => ids("translate subtitles")).toEqual([["films/translate_subtitles"], ["films/translate_subtitles"]]);
    await expect.poll(() => ids("timecode")).toEqual([expect.arrayContaining(["films/cut_scene"]), expect.arrayContaining(["films/cut_scene"])]);
    const [one, other] = await found("cut the scene and translate its subtitles");
    expect(one).toEqual(other);

    const { revision: changed } = await b.api.call("register", films("cut_scene"));
    expect((await a.api.call("findTools", { intent: "translate subtitles", minRevision: changed })).tools.map((t: any) => t.stub.toolId)).not.toContain("films/translate_subtitles");
    const { revision: gone } = await a.api.call("deregister", { serverId: "films" });
    expect((await b.api.call("findTools", { intent: "cut scene", minRevision: gone })).tools).toEqual([]);
    expect(await ids("films/cut_scene")).toEqual([[], []]);
  });

  it("after a flushed store the index is that of the catalogue that comes back", { timeout: 90_000 }, async () => {
    const { a, b, redis } = await startPair();
    await a.api.call("register", films("translate_subtitles"));
    await expect.poll(async () => (await b.api.call("findTools", { intent: "subtitles" })).tools.length).toBe(1);
    await redis.flush();
    await expect.poll(async () => (await b.api.call("findTools", { intent: "subtitles" })).stale).toBe(true);
    // The old catalogue goes on serving while the new one grows; the new tool is there for whoever knows its revision.
    expect((await b.api.call("findTools", { intent: "subtitles" })).tools).toHaveLength(1);
    const { revision } = await a.api.call("register", films("dub_voices"));
    const { tools } = await b.api.call("findTools", { intent: "dub voices and translate subtitles", minRevision: revision });
    expect(tools.map((t: any) => t.stub.toolId)).toEqual(["films/dub_voices"]);
    await expect.poll(async () => (await b.api.call("findTools", { intent: "dub voices or subtitles" })).tools.map((t: any) => t.stub.toolId), { timeout: 20_000 }).toEqual(["films/dub_voices"]);
  });
});
