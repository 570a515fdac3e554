import { line } from "../io.js";
import type { Io } from "../io.js";
import { formatTable, grouped, printable } from "../table.js";

/** What became of one server of the file. */
export interface Outcome {
  readonly name: string;
  readonly serverId: string;
  readonly result: "registered" | "pending" | "wrapped" | "skipped" | "failed" | "would register" | "would wrap";
  /** Listed tools; undefined where there is no count. */
  readonly tools?: number;
  readonly notes: readonly string[];
}

export function printOutcomes(io: Io, outcomes: readonly Outcome[]): void {
  const columns = [
    { head: "NAME", shrink: true },
    { head: "SERVER" },
    { head: "RESULT" },
    { head: "TOOLS", right: true },
  ];
  const rows = outcomes.map(({ name, serverId, result, tools }) => [
    name,
    result === "skipped" ? "–" : serverId,
    result,
    tools === undefined ? "" : grouped(tools),
  ]);
  for (const text of formatTable(columns, rows)) line(io.stdout, text);
  for (const { name, notes } of outcomes)
    for (const note of notes) line(io.stdout, `  ${printable(name)}: ${printable(note)}`);
}
