/** What a story found, for people and for programs. */

/** A promise about numbers, and whether it was kept. */
export interface Aim {
  readonly what: string;
  readonly found: string;
  readonly met: boolean;
}

export interface Outcome {
  readonly story: string;
  /** What happened and was counted, by name. */
  readonly facts: Readonly<Record<string, unknown>>;
  readonly aims: readonly Aim[];
}

export type Say = (line: string) => void;

export function sayAims(aims: readonly Aim[], say: Say): void {
  for (const { what, found, met } of aims) say(`  ${met ? "met   " : "MISSED"}  ${what}: ${found}`);
}

/** The first column to the left, the others to the right. */
export function sayTable(head: readonly string[], rows: readonly (readonly (string | number)[])[], say: Say): void {
  const all = [head, ...rows.map((row) => row.map((cell) => (typeof cell === "number" ? cell.toLocaleString("en") : cell)))];
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  for (const row of all) say(`  ${row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join("  ")}`);
}

export const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;
