import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

/** `DEEP_TESTS=1` (npm run test:deep) adds the `*.deep.ts` files: long random runs that CI does not wait for. */
const deep = process.env["DEEP_TESTS"] === "1";

export default defineConfig({
  root: fileURLToPath(new URL("..", import.meta.url)),
  test: {
    include: deep ? ["test/**/*.test.ts", "test/**/*.deep.ts"] : ["test/**/*.test.ts"],
    globalSetup: ["test/setup/global.ts"],
    pool: "forks",
    // Most of the time is spent waiting, for leases, probes and time-outs of real processes.
    maxWorkers: 3,
    testTimeout: deep ? 600_000 : 30_000,
    hookTimeout: 60_000,
    // The default of one second is too short for a machine that runs three files at once; what holds sooner waits for nothing.
    expect: { poll: { timeout: 20_000 } },
  },
});
