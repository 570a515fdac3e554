/**
 * Counts what lives by itself in notes, without a list of it all: each of them has a slot in one of a few pages, and a page has
 * room for its share of the limit. A slot says until when it counts, so those that nobody gave back go by themselves, and a count
 * is right on every replica and after every restart. A slot is taken before and lasts longer than what it stands for: never do
 * more live than the limit allows; what has just gone may still be counted for a while.
 */
import { Fault } from "../../domain/fault.js";
import type { Notes } from "../ports.js";

export interface SlotBook {
  readonly notes: Notes;
  /** Begins the keys of its pages. */
  readonly key: string;
  readonly pages: number;
  readonly limit: number;
}

/** What a slot stands for, 16 hex digits, and until when it counts. */
export interface Slot {
  readonly id: string;
  readonly untilMs: number;
}

/** Takes a slot, and answers its page; undefined when all are taken. */
export async function takeSlot(book: SlotBook, slot: Slot, nowMs: number): Promise<number | undefined> {
  const start = Number.parseInt(slot.id.slice(0, 8), 16) % book.pages;
  for (let step = 0; step < book.pages; step++) {
    const page = (start + step) % book.pages;
    const room = roomOf(book, page);
    if (room > 0 && (await changePage(book, page, nowMs, (slots) => slots.size < room && add(slots, slot)))) return page;
  }
  return undefined;
}

/** Counts what lives on; a slot that was lost is there again, whatever room there is. */
export async function keepSlot(book: SlotBook, page: number, slot: Slot, nowMs: number): Promise<void> {
  await changePage(book, page, nowMs, (slots) => (slots.get(slot.id) ?? 0) < secondsOf(slot) && add(slots, slot));
}

/** Gives a slot back; one that is not there was given back before. */
export async function freeSlot(book: SlotBook, page: number, id: string, nowMs: number): Promise<void> {
  await changePage(book, page, nowMs, (slots) => slots.delete(id));
}

/** Exactly `limit` in all. */
function roomOf({ pages, limit }: SlotBook, page: number): number {
  return Math.floor(limit / pages) + (page < limit % pages ? 1 : 0);
}

/** Until when each counts, in s since the epoch, by id. */
type Page = Map<string, number>;

/** Pages are many and small, so that writers seldom meet; each try that fails is a write of somebody else. */
const TRIES = 32;

/** A page outlives its slots by this, so that the clocks of replicas and store may differ. */
const PAGE_MARGIN_MS = 60_000;

/** `change` says whether it changed anything, which is then written; answers that. */
async function changePage(book: SlotBook, page: number, nowMs: number, change: (slots: Page) => boolean): Promise<boolean> {
  const key = `${book.key}/${page}`;
  for (let attempt = 0; attempt < TRIES; attempt++) {
    const note = await book.notes.get(key);
    const slots = decodePage(note?.bytes, nowMs);
    if (!change(slots)) return false;
    const last = Math.max(nowMs / 1_000, ...slots.values());
    const ttlMs = Math.ceil(last * 1_000 - nowMs) + PAGE_MARGIN_MS;
    if ((await book.notes.put(key, encodePage(slots), ttlMs, note?.version ?? 0)) !== undefined) return true;
  }
  throw new Fault("WRITE_CONFLICT", "others kept counting toolsets at the same time; try again", { retryAfterMs: 100 });
}

function add(slots: Page, slot: Slot): true {
  slots.set(slot.id, secondsOf(slot));
  return true;
}

function secondsOf({ untilMs }: Slot): number {
  return Math.ceil(untilMs / 1_000);
}

const ID_BYTES = 8;
const SLOT_BYTES = ID_BYTES + 4;

function encodePage(slots: Page): Uint8Array {
  const bytes = Buffer.alloc(slots.size * SLOT_BYTES);
  let at = 0;
  for (const [id, until] of slots) {
    bytes.write(id, at, ID_BYTES, "hex");
    bytes.writeUInt32BE(until, at + ID_BYTES);
    at += SLOT_BYTES;
  }
  return bytes;
}

/** Without the slots whose time is over. */
function decodePage(stored: Uint8Array | undefined, nowMs: number): Page {
  const slots: Page = new Map();
  if (!stored) return slots;
  const bytes = Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength);
  for (let at = 0; at + SLOT_BYTES <= bytes.byteLength; at += SLOT_BYTES) {
    const until = bytes.readUInt32BE(at + ID_BYTES);
    if (until * 1_000 > nowMs) slots.set(bytes.toString("hex", at, at + ID_BYTES), until);
  }
  return slots;
}
