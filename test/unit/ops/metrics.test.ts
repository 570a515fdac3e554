import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { createMetrics } from "../../../src/ops/metrics.js";

interface Row {
  readonly name: string;
  readonly type: string;
  readonly labels: string;
  readonly help: string;
}

const PAGE = readFileSync(new URL("../../../src/ops/METRICS.md", import.meta.url), "utf8");

function documented(): Row[] {
  return [...PAGE.matchAll(/^\| `(toolcrib_\w+)` +\| (\w+) +\| (.*?) +\| (.*?) +\|$/gm)].map((m) => ({
    name: m[1] ?? "",
    type: m[2] ?? "",
    labels: m[3] === "–" ? "" : (m[3] ?? "").replaceAll("`", ""),
    help: m[4] ?? "",
  }));
}

async function declared(): Promise<Row[]> {
  const { registry } = createMetrics("1.2.3");
  const labels = new Map(
    registry.getMetricsAsArray().map((m) => [m.name, (m as unknown as { labelNames: string[] }).labelNames.join(", ")]),
  );
  return (await registry.getMetricsAsJSON())
    .filter((m) => !/^toolcrib_(process|nodejs)_/.test(m.name))
    .map((m) => ({ name: m.name, type: String(m.type), labels: labels.get(m.name) ?? "", help: m.help }));
}

describe("metrics", () => {
  it("are those of METRICS.md, both ways, with type, labels and meaning", async () => {
    const byName = (a: Row, b: Row) => (a.name < b.name ? -1 : 1);
    expect((await declared()).sort(byName)).toEqual(documented().sort(byName));
  });

  it("use one prefix, base units and no label that grows with the data", async () => {
    const { registry } = createMetrics("1");
    const text = await registry.metrics();
    for (const name of [...text.matchAll(/^# TYPE (\S+)/gm)].map((m) => m[1])) {
      expect(name).toMatch(/^toolcrib_/);
      expect(name).not.toMatch(/_(ms|milliseconds|kb|mb)(_|$)/);
    }
    // A tool that fails is named, because the alert has to name it; they are bounded, and go again.
    const bounded = ["toolcrib_tool_collapsed"];
    for (const row of documented().filter(({ name }) => !bounded.includes(name))) {
      for (const banned of ["namespace", "server", "tool", "instance", "peer"])
        expect(row.labels).not.toContain(banned);
    }
    expect(text).toContain('toolcrib_build_info{version="1"} 1');
  });

  it("can be made twice in one process", () => {
    createMetrics("1").rpcRequests.inc({ method: "m", code: "OK" });
    expect(() => createMetrics("2")).not.toThrow();
  });
});
