/** Results as text. */

const HEADS = ["bench", "what", "unit", "ours", "baseline", "ratio (min-max)", "limit", ""];

export function table(results) {
  const lines = [HEADS];
  for (const { bench, rows, skipped } of results) {
    if (skipped) lines.push([bench, `skipped: ${skipped}`]);
    for (const r of rows ?? []) {
      const ratio = r.ratio ? `${figure(r.ratio.median)} (${figure(r.ratio.min)}-${figure(r.ratio.max)})` : "-";
      lines.push([bench, r.what, r.unit, spread(r.ours), r.baseline ? spread(r.baseline) : "-", ratio, r.limit, r.verdict]);
    }
  }
  const cells = lines.filter((line) => line.length === HEADS.length);
  const widths = HEADS.map((_, i) => Math.max(...cells.map((line) => line[i].length)));
  return lines.map((line) => line.map((cell, i) => (i < line.length - 1 ? cell.padEnd(widths[i]) : cell)).join("  ").trimEnd()).join("\n");
}

function spread({ median, min, max }) {
  return min === max ? figure(median) : `${figure(median)} (${figure(min)}-${figure(max)})`;
}

/** Three significant digits are all that a noisy machine gives. */
function figure(value) {
  if (value === 0) return "0";
  if (Math.abs(value) >= 1_000) return String(Math.round(value));
  return String(Number(value.toPrecision(3)));
}
