import { once } from "node:events";
import { connect } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { createMetrics } from "../../../src/ops/metrics.js";
import { type OpsServer, startOps } from "../../../src/ops/server.js";

const quiet = { debug() {}, info() {}, warn() {}, error() {} };
const open: OpsServer[] = [];

async function start(reasons: string[], port = 0): Promise<string> {
  const server = await startOps({
    address: { host: "127.0.0.1", port },
    ready: () => reasons,
    metrics: createMetrics("1").registry,
    log: quiet,
  });
  open.push(server);
  return `http://127.0.0.1:${server.address.port}`;
}

afterEach(async () => {
  await Promise.all(open.splice(0).map((s) => s.close()));
});

describe("startOps", () => {
  it("tells life and readiness with reasons", async () => {
    const reasons: string[] = [];
    const base = await start(reasons);
    expect((await fetch(`${base}/livez`)).status).toBe(200);
    expect(await (await fetch(`${base}/readyz`)).json()).toEqual({ status: "ready", reasons: [] });
    reasons.push("the catalogue of partition 0 is not loaded");
    const refused = await fetch(`${base}/readyz?verbose`);
    expect(refused.status).toBe(503);
    expect(await refused.json()).toEqual({ status: "not ready", reasons });
    expect((await fetch(`${base}/livez`)).status).toBe(200);
  });

  it("serves metrics, and nothing else", async () => {
    const base = await start([]);
    const metrics = await fetch(`${base}/metrics`);
    expect(metrics.headers.get("content-type")).toContain("text/plain");
    expect(await metrics.text()).toContain("toolcrib_build_info");
    expect((await fetch(`${base}/`)).status).toBe(404);
    expect((await fetch(`${base}/metrics/x`)).status).toBe(404);
    expect((await fetch(`${base}/metrics`, { method: "POST" })).status).toBe(405);
  });

  it("answers a failing probe with 500 and lives on", async () => {
    const server = await startOps({
      address: { host: "127.0.0.1", port: 0 },
      ready: () => {
        throw new Error("probe");
      },
      metrics: createMetrics("1").registry,
      log: quiet,
    });
    open.push(server);
    const base = `http://127.0.0.1:${server.address.port}`;
    expect((await fetch(`${base}/readyz`)).status).toBe(500);
    expect((await fetch(`${base}/livez`)).status).toBe(200);
  });

  it("says in one sentence that a port is taken", async () => {
    const base = await start([]);
    const port = Number(new URL(base).port);
    await expect(start([], port)).rejects.toThrow(/^The ops address 127\.0\.0\.1:\d+ is taken.*--ops-address.*\.$/);
  });

  it("closes although idle clients hold connections", async () => {
    const base = await start([]);
    const silent = connect(Number(new URL(base).port), "127.0.0.1");
    await once(silent, "connect");
    const ended = once(silent, "close");
    silent.resume();
    await fetch(`${base}/livez`);
    await open.pop()?.close();
    await ended;
  });
});
