import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { settingsTable } from "../../../src/config/config.js";
import { LIMITS } from "../../../src/domain/limits.js";

const ROOT = new URL("../../../", import.meta.url);
const readme = readFileSync(new URL("README.md", ROOT), "utf8");

describe("README", () => {
  it("has the settings table as the configuration makes it (paste the expected text between the marks)", () => {
    const between = /<!-- settings -->\n([\s\S]*?)\n<!-- \/settings -->/.exec(readme)?.[1];
    expect(between).toBe(settingsTable());
  });

  it("links only to files that are there", () => {
    const links = [...readme.matchAll(/\]\(([^)#:]+)\)/g)].map((m) => m[1] as string);
    expect(links.length).toBeGreaterThan(3);
    for (const link of links) expect(existsSync(fileURLToPath(new URL(link, ROOT))), link).toBe(true);
  });

  it("tells the limits as they are", () => {
    expect(LIMITS.toolNameLength).toBe(128);
    expect(LIMITS.toolsPerServer).toBe(10_000);
    expect(LIMITS.stubBytesPerServer).toBe(4 << 20);
    expect(LIMITS.definitionBytes).toBe(1 << 20);
    expect([LIMITS.schemaDepth, LIMITS.messageBytes, LIMITS.pageBytes, LIMITS.watchChunkBytes]).toEqual([64, 4 << 20, 120 << 10, 32 << 10]);
    expect([LIMITS.leaseMinMs, LIMITS.leaseDefaultMs, LIMITS.leaseMaxMs]).toEqual([10_000, 30_000, 3_600_000]);
    expect([LIMITS.windowRevisions, LIMITS.windowBytes, LIMITS.loadCallerMs]).toEqual([10_000, 64 << 20, 200]);
  });
});
