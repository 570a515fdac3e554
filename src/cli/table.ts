/** Tables for people: aligned, and never wider than a terminal of 100 columns. */

export const WIDTH = 100;
const GAP = "  ";

export interface Column {
  readonly head: string;
  /** The column that gives way when the row is too long; one a table. */
  readonly shrink?: boolean;
  readonly right?: boolean;
}

export function formatTable(columns: readonly Column[], rows: readonly (readonly string[])[], width = WIDTH): string[] {
  const cells = rows.map((row) => row.map(printable));
  const natural = columns.map((column, i) =>
    Math.max(column.head.length, ...cells.map((row) => widthOf(row[i] ?? ""))),
  );
  const widths = widthsFor(columns, natural, width);
  const format = (row: readonly string[]): string =>
    columns
      .map((column, i) => pad(cut(row[i] ?? "", widths[i] ?? 0), widths[i] ?? 0, column.right === true))
      .join(GAP)
      .trimEnd();
  return [format(columns.map((c) => c.head)), ...cells.map(format)];
}

/** First the giving column shrinks, down to 20; then the widest others are cut. */
function widthsFor(columns: readonly Column[], natural: readonly number[], width: number): number[] {
  const widths = [...natural];
  const excess = (): number => widths.reduce((sum, w) => sum + w, GAP.length * (widths.length - 1)) - width;
  const giving = columns.findIndex((c) => c.shrink);
  if (giving >= 0)
    widths[giving] = Math.max(Math.min(20, widths[giving] ?? 0), (widths[giving] ?? 0) - Math.max(0, excess()));
  while (excess() > 0) {
    const widest = widths.indexOf(Math.max(...widths));
    if ((widths[widest] ?? 0) <= 8) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return widths;
}

/** Names and texts come from strangers: what could steer a terminal is shown, not obeyed. */
export function printable(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]+/g, " ").trim();
}

function isWide(point: number): boolean {
  return (
    point >= 0x1100 &&
    (point <= 0x115f ||
      (point >= 0x2e80 && point <= 0xa4cf) ||
      (point >= 0xac00 && point <= 0xd7a3) ||
      (point >= 0xf900 && point <= 0xfaff) ||
      (point >= 0xfe30 && point <= 0xfe6f) ||
      (point >= 0xff00 && point <= 0xff60) ||
      (point >= 0xffe0 && point <= 0xffe6) ||
      (point >= 0x1f300 && point <= 0x1faff) ||
      (point >= 0x20000 && point <= 0x3fffd))
  );
}

/** Terminal columns: East Asian characters and emoji take two. */
function widthOf(text: string): number {
  let width = 0;
  for (const char of text) width += isWide(char.codePointAt(0) ?? 0) ? 2 : 1;
  return width;
}

/** Cut to so many terminal columns, with a mark where something is missing. */
export function cut(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  let kept = "";
  let used = 0;
  for (const char of text) {
    const next = widthOf(char);
    if (used + next > width - 1) break;
    kept += char;
    used += next;
  }
  return `${kept.trimEnd()}…`;
}

function pad(text: string, width: number, right: boolean): string {
  const space = " ".repeat(Math.max(0, width - widthOf(text)));
  return right ? space + text : text + space;
}

/** The first sentence of a text. */
export function firstSentence(text: string): string {
  return /^.*?[.!?。！？](?=\s|$)|^.*$/su.exec(printable(text))?.[0] ?? "";
}

export function grouped(count: number): string {
  return count.toLocaleString("en-US");
}
