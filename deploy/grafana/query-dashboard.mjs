/**
 * Asks a running Prometheus every expression of the dashboard, and says which panels would be empty.
 *
 *   node deploy/grafana/query-dashboard.mjs [http://127.0.0.1:9090]
 *
 * Exits 1 if an expression fails or answers nothing. Run it against a registry that has had some traffic: a counter with labels
 * has no series before it first counts.
 */
import { readFileSync } from "node:fs";

const prometheus = process.argv[2] ?? "http://127.0.0.1:9090";
const { panels } = JSON.parse(readFileSync(new URL("dashboards/toolcrib.json", import.meta.url), "utf8"));

/** As Grafana fills them in: four scrapes of 10 s, and every replica. */
const filledIn = (expr) => expr.replaceAll("$__rate_interval", "40s").replaceAll("$instance", ".*");

async function query(expr) {
  const response = await fetch(`${prometheus}/api/v1/query`, {
    method: "POST",
    body: new URLSearchParams({ query: filledIn(expr) }),
  });
  const { status, error, data } = await response.json();
  return status === "success" ? { series: data.result } : { series: [], error };
}

let asked = 0;
let empty = 0;
for (const { title, targets = [] } of panels) {
  for (const { expr } of targets) {
    const { series, error } = await query(expr);
    asked++;
    if (series.length === 0) empty++;
    const values = series.slice(0, 4).map(({ value }) => Number(value[1]).toPrecision(3));
    const shown = series.length === 0 ? (error ?? "NOTHING") : `${values.join(", ")}${series.length > 4 ? ", …" : ""}`;
    process.stdout.write(`${title.padEnd(42)} ${String(series.length).padStart(3)} series  ${shown}\n`);
  }
}
process.stdout.write(`${asked} expressions asked, ${empty} without an answer\n`);
process.exitCode = empty === 0 ? 0 : 1;
