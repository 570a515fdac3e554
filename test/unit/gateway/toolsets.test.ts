/** What a gateway remembers of toolsets for the time when the registry is away, and for how long. */
import { describe, expect, it } from "vitest";
import { type RegistryConnection, RegistryError } from "../../../src/client/index.js";
import { NO_OBSERVER } from "../../../src/gateway/observer.js";
import { RegistryLink } from "../../../src/gateway/registry.js";
import { Toolsets } from "../../../src/gateway/toolsets.js";
import { GATEWAY } from "../../../src/gateway/words.js";

const IDLE_MS = 60_000;

function remembering() {
  const world = { nowMs: 0, away: false };
  const getToolset = async ({ handle = "" }) => {
    if (world.away) throw new RegistryError("the registry cannot be reached", { code: "UNAVAILABLE" });
    return { toolset: { handle, toolIds: ["one/greet"], facts: {}, etag: "1" } };
  };
  const link = new RegistryLink({ getToolset } as unknown as RegistryConnection, "default");
  return { world, toolsets: new Toolsets(link, IDLE_MS, () => world.nowMs, NO_OBSERVER) };
}

describe("a remembered toolset", () => {
  it("bridges a registry that is away, for as long as somebody uses it", async () => {
    const { world, toolsets } = remembering();
    await toolsets.read(GATEWAY, "ts-1");
    world.away = true;
    for (let uses = 0; uses < 5; uses++) {
      world.nowMs += IDLE_MS - 1;
      expect(await toolsets.read(GATEWAY, "ts-1")).toMatchObject({ stale: true, toolset: { toolIds: ["one/greet"] } });
    }
  });

  it("that was left alone for its idle time has expired, though nobody could ask the registry", async () => {
    const { world, toolsets } = remembering();
    await toolsets.read(GATEWAY, "ts-1");
    world.nowMs = IDLE_MS / 2;
    await toolsets.read(GATEWAY, "ts-2");
    world.away = true;
    world.nowMs = IDLE_MS;
    await expect(toolsets.read(GATEWAY, "ts-1")).rejects.toThrow("cannot be reached");
    expect(await toolsets.read(GATEWAY, "ts-2")).toMatchObject({ stale: true });
  });

  it("leaves the gateway's memory when it has expired, without anybody asking for it", async () => {
    const { world, toolsets } = remembering();
    for (let i = 0; i < 100; i++) await toolsets.read(GATEWAY, `ts-${i}`);
    expect(toolsets.remembered).toBe(100);
    world.nowMs = IDLE_MS - 1;
    await toolsets.read(GATEWAY, "ts-7");
    world.nowMs = IDLE_MS;
    toolsets.forgetIdle();
    expect(toolsets.remembered).toBe(1);
  });
});
