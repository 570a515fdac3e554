/** What a run counted, from its history alone. */
import type { History, Item } from "../validators/history.js";

export interface Figures {
  readonly calls: Record<string, { readonly ok: number; readonly failed: number; readonly pending: number }>;
  /** `method reason` → how often. */
  readonly errors: Record<string, number>;
  readonly watches: { readonly opened: number; readonly resumed: number; readonly snapshots: number; readonly changes: number; readonly events: number; readonly bookmarks: number };
  /** Why watches ended, the ones that their client left included. */
  readonly watchEnds: Record<string, number>;
  /** RELIST_REQUIRED, by cause. */
  readonly relists: Record<string, number>;
  readonly items: number;
}

export function figuresOf({ items }: History): Figures {
  const calls: Record<string, { ok: number; failed: number; pending: number }> = {};
  const errors: Record<string, number> = {};
  const watches = { opened: 0, resumed: 0, snapshots: 0, changes: 0, events: 0, bookmarks: 0 };
  const watchEnds: Record<string, number> = {};
  const relists: Record<string, number> = {};
  for (const item of items) {
    if ("outcome" in item) countCall(item, calls, errors);
    else if (item.kind === "watch") {
      watches.opened++;
      if (item.resumeToken !== "") watches.resumed++;
    } else if (item.kind === "ended") {
      const reason = item.reason || "left";
      watchEnds[reason] = (watchEnds[reason] ?? 0) + 1;
      if (item.reason === "RELIST_REQUIRED") relists[item.cause] = (relists[item.cause] ?? 0) + 1;
    } else if (item.kind === "message") {
      const { message } = item;
      if (message.kind === "change") {
        watches.changes++;
        watches.events += message.events.length;
      } else if (message.kind === "bookmark") watches.bookmarks++;
      else if (message.last) watches.snapshots++;
    }
  }
  return { calls, errors, watches, watchEnds, relists, items: items.length };
}

function countCall(item: Extract<Item, { outcome: unknown }>, calls: Record<string, { ok: number; failed: number; pending: number }>, errors: Record<string, number>): void {
  const count = (calls[item.kind] ??= { ok: 0, failed: 0, pending: 0 });
  if (item.outcome.kind === "ok") count.ok++;
  else if (item.outcome.kind === "pending") count.pending++;
  else {
    count.failed++;
    const key = `${item.kind} ${item.outcome.reason}`;
    errors[key] = (errors[key] ?? 0) + 1;
  }
}

/** Half are at most this. 0 for none. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return Math.round(sorted[Math.floor((sorted.length - 1) / 2)] ?? 0);
}
