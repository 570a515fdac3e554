/** The tools of a walk, judged one by one: what is wrong with one never hides another (P9). */
import type { ListedTool } from "../catalogue/upstream-port.js";
import { readDefinition } from "../domain/definition.js";
import { compareText } from "../domain/ids.js";
import { deriveLabel } from "../domain/label.js";
import type { RejectedTool } from "../domain/server.js";

export interface Screened {
  /** In name order, each name once. */
  readonly tools: readonly ListedTool[];
  /** In the order of the listing. */
  readonly rejected: readonly RejectedTool[];
}

/** So many characters are judged before others get the processor: a large listing must not delay anybody (P9). */
const AT_ONCE = 64 * 1024;

const utf8 = new TextEncoder();

/** `texts` are tool objects exactly as they stand in the response. Of tools with one name the first good one stays. */
export async function screen(texts: readonly string[]): Promise<Screened> {
  const tools = new Map<string, ListedTool>();
  const rejected: RejectedTool[] = [];
  let judged = 0;
  for (const [at, text] of texts.entries()) {
    if (judged > AT_ONCE) {
      await new Promise((resolve) => setImmediate(resolve));
      judged = 0;
    }
    judged += text.length;
    const read = readDefinition(utf8.encode(text));
    if (!read.ok) {
      rejected.push({ name: read.name || `#${at + 1}`, reasons: read.reasons });
      continue;
    }
    const { name, bytes, digest } = read.definition;
    if (tools.has(name))
      rejected.push({ name, reasons: [`is listed a second time, as number ${at + 1}: the first one stays`] });
    else tools.set(name, { name, definition: bytes, digest, label: deriveLabel(read.definition) });
  }
  return { tools: [...tools.values()].sort((a, b) => compareText(a.name, b.name)), rejected };
}
