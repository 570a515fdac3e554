/** A short chaos run with every CI run; `npm run chaos` makes long ones. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { temporaryFolder } from "../support/registry.js";

const CLI = fileURLToPath(new URL("./cli.mjs", import.meta.url));

describe.skipIf(inject("redisServer") === "")("chaos", () => {
  it("a minute of kills, freezes, failovers, losses and bad wires breaks no promise", { timeout: 240_000 }, async () => {
    const json = join(await temporaryFolder(), "figures.json");
    const args = ["--minutes", "0.6", "--servers", "20", "--watchers", "10", "--json", json];
    const child = spawn(process.execPath, [CLI, ...args], { stdio: ["ignore", "pipe", "pipe"] });
    onTestFinished(() => void child.kill("SIGTERM"));
    let said = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => void (said += chunk.toString()));
    const [code] = (await once(child, "exit")) as [number];
    expect(code, said).toBe(0);
    const figures = JSON.parse(await readFile(json, "utf8"));
    // A run in which nothing happened proves nothing.
    expect(figures.timeline.length, said).toBeGreaterThan(2);
    expect(figures.calls.register.ok, said).toBeGreaterThan(20);
    expect(figures.watches.changes, said).toBeGreaterThan(20);
  });
});
