import { existsSync, readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { Histogram } from "prom-client";
import { parse } from "yaml";
import { createMetrics } from "../../../src/ops/metrics.js";
import { groupingsOf, referencesOf } from "./expressions.js";

const DEPLOY = new URL("../../../deploy/", import.meta.url);
const read = (path: string) => readFileSync(new URL(path, DEPLOY), "utf8");

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly datasource?: { readonly uid: string };
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly {
    readonly expr: string;
    readonly legendFormat: string;
    readonly datasource: { readonly uid: string };
  }[];
}

const dashboard = JSON.parse(read("grafana/dashboards/toolcrib.json")) as {
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly { readonly name: string; readonly definition: string }[] };
};
const alerts = (
  parse(read("prometheus/alerts.yml")) as {
    groups: {
      rules: {
        alert: string;
        expr: string;
        for?: string;
        labels: { severity: string };
        annotations: Record<string, string>;
      }[];
    }[];
  }
).groups.flatMap((group) => group.rules);

/** Metric as Prometheus stores it → its labels. */
const exported = new Map<string, readonly string[]>();
for (const metric of createMetrics("1").registry.getMetricsAsArray()) {
  const { labelNames, name } = metric as unknown as { name: string; labelNames: string[] };
  const histogram = metric instanceof Histogram;
  if (!histogram) exported.set(name, labelNames);
  else
    for (const part of ["bucket", "sum", "count"])
      exported.set(`${name}_${part}`, [...labelNames, ...(part === "bucket" ? ["le"] : [])]);
}
exported.set("up", []);
/** What Prometheus itself adds to every series. */
const ADDED = ["job", "instance"];

/** Values that METRICS.md gives to a label, of all metrics together, and of `reason` and `code`, which are named elsewhere. */
const page = readFileSync(new URL("../../../src/ops/METRICS.md", import.meta.url), "utf8");
const proto = readFileSync(new URL("../../../proto/toolcrib/v1/error.proto", import.meta.url), "utf8");
const known = new Set([
  ...[...page.matchAll(/^\| `\w+`[^|]*\| (.*)\|$/gm)].flatMap(([, text = ""]) =>
    [...text.matchAll(/`([\w-]+)`/g)].map((m) => m[1]),
  ),
  ...[...proto.matchAll(/ERROR_REASON_(\w+) =/g)].map((m) => m[1]),
  ..."OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED RESOURCE_EXHAUSTED".split(
    " ",
  ),
  ..."FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS UNAUTHENTICATED".split(" "),
]);

function problemsOf(expression: string): string[] {
  const references = referencesOf(expression);
  const problems = references.length === 0 ? ["names no metric"] : [];
  const labels = new Set<string>(ADDED);
  for (const { metric, matchers } of references) {
    const has = exported.get(metric);
    if (!has) {
      problems.push(`${metric} is not exported`);
      continue;
    }
    for (const label of has) labels.add(label);
    for (const { label, values } of matchers) {
      if (![...has, ...ADDED].includes(label)) problems.push(`${metric} has no label ${label}`);
      if (["job", "instance", "method", "partition", "le"].includes(label)) continue;
      for (const value of values) if (!known.has(value)) problems.push(`${label}="${value}" is documented nowhere`);
    }
  }
  for (const label of groupingsOf(expression))
    if (!labels.has(label)) problems.push(`grouped by ${label}, which no metric in it has`);
  return problems;
}

const targets = dashboard.panels.flatMap((panel) => (panel.targets ?? []).map((target) => ({ panel, ...target })));

describe("the check itself", () => {
  it("finds metrics, labels, values and groupings that do not exist", () => {
    expect(problemsOf("sum(toolcrib_no_such_total)")).toEqual(["toolcrib_no_such_total is not exported"]);
    expect(problemsOf('toolcrib_store_up{method="x"}')).toEqual(["toolcrib_store_up has no label method"]);
    expect(problemsOf('toolcrib_schema_loads_total{result="LOAD_FAILED_X"}')).toEqual([
      'result="LOAD_FAILED_X" is documented nowhere',
    ]);
    expect(problemsOf("sum by (method) (toolcrib_store_up)")).toEqual(["grouped by method, which no metric in it has"]);
    expect(problemsOf("rate(toolcrib_rpc_duration_seconds[1m])")).toEqual([
      "toolcrib_rpc_duration_seconds is not exported",
    ]);
    expect(problemsOf("1 + 1")).toEqual(["names no metric"]);
  });
});

describe("the dashboard", () => {
  it("asks only for metrics, labels and values that the registry exports", () => {
    expect(targets.length).toBeGreaterThan(30);
    for (const { panel, expr } of targets) expect(problemsOf(expr), `${panel.title}: ${expr}`).toEqual([]);
  });

  it("can be narrowed to a replica in every panel, names its series by labels they have, and says what it shows", () => {
    for (const { panel, expr, legendFormat } of targets) {
      for (const { matchers } of referencesOf(expr))
        expect(
          matchers.some((m) => m.label === "instance" && m.values[0] === "$instance"),
          panel.title,
        ).toBe(true);
      const named = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map((m) => m[1] as string);
      const aggregated = /\b(?:sum|max|min|count)\b/.test(expr);
      for (const label of named)
        if (aggregated) expect(groupingsOf(expr), `${panel.title}: ${legendFormat}`).toContain(label);
      expect(panel.description, panel.title).toMatch(/\.$/);
    }
  });

  it("uses the data source that is provisioned", () => {
    const sources = (
      parse(read("grafana/provisioning/datasources/prometheus.yml")) as { datasources: { uid: string }[] }
    ).datasources;
    const uids = sources.map((source) => source.uid);
    for (const target of targets)
      expect([uids, uids]).toEqual([[target.datasource.uid], [target.panel.datasource?.uid]]);
  });

  it("has panels that do not overlap, each with its own id", () => {
    expect(new Set(dashboard.panels.map((panel) => panel.id)).size).toBe(dashboard.panels.length);
    const taken = new Map<string, string>();
    for (const { title, gridPos } of dashboard.panels) {
      expect(gridPos.x + gridPos.w, title).toBeLessThanOrEqual(24);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++)
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          expect(taken.get(`${x},${y}`), `${title} at ${x},${y}`).toBeUndefined();
          taken.set(`${x},${y}`, title);
        }
    }
  });

  it("shows every metric of the registry's own but the build's (a new metric wants a panel)", () => {
    const shown = new Set(
      targets.flatMap((target) => referencesOf(target.expr).map((r) => r.metric.replace(/_(bucket|sum|count)$/, ""))),
    );
    const own = [...page.matchAll(/^\| `(toolcrib_\w+)`/gm)].map((m) => m[1] as string);
    expect(own.filter((name) => !shown.has(name))).toEqual(["toolcrib_build_info"]);
  });
});

describe("the alerts", () => {
  it("ask only for metrics, labels and values that the registry exports", () => {
    for (const rule of alerts) expect(problemsOf(rule.expr), rule.alert).toEqual([]);
  });

  it("are few, graded, and have each a runbook with the same name and the same questions answered", () => {
    expect(alerts.length).toBeLessThanOrEqual(15);
    for (const { alert, labels, annotations } of alerts) {
      expect(["page", "ticket"], alert).toContain(labels.severity);
      expect(annotations["runbook_url"]).toBe(`deploy/runbooks/${alert}.md`);
      const runbook = read(`runbooks/${alert}.md`);
      expect(runbook.split("\n")[0]).toBe(`# ${alert}`);
      for (const part of ["What it means", "What users see", "How to check", "What to do"])
        expect(runbook, alert).toContain(`**${part}.**`);
    }
    expect(readdirSync(new URL("runbooks", DEPLOY)).sort()).toEqual(alerts.map((rule) => `${rule.alert}.md`).sort());
  });

  it("have runbooks that link only to pages and panels that are there", () => {
    for (const { alert } of alerts) {
      const runbook = read(`runbooks/${alert}.md`);
      for (const [, link = ""] of runbook.matchAll(/\]\(([^)]+)\)/g))
        expect(existsSync(new URL(`runbooks/${link}`, DEPLOY)), `${alert}: ${link}`).toBe(true);
      const titles = dashboard.panels.map((panel) => panel.title);
      const prose = runbook.replace(/\*\*[^*]*\*\*/g, "");
      for (const [, title = ""] of prose.matchAll(/\*([^*]+)\*/g))
        expect(titles, `${alert}: ${title}`).toContain(title);
    }
  });
});
