/** How many toolsets a principal and a namespace have, held to their limits in slots. */
import { createHash } from "node:crypto";
import { EVERYBODY, type Principal } from "../../domain/identity.js";
import { type ToolsetQuotas, toolsetsFull } from "../../domain/quotas.js";
import type { Logger, Notes } from "../ports.js";
import type { ToolsetRecord } from "./record.js";
import { freeSlot, keepSlot, type SlotBook, takeSlot } from "./slots.js";

type Counted = ToolsetRecord["counted"];

/** At the default limits a page is some 15 KB when all are taken. */
const PRINCIPAL_PAGES = 16;
const NAMESPACE_PAGES = 32;

export class ToolsetCount {
  constructor(
    private readonly notesOf: (namespace: string) => Notes,
    private readonly quotas: ToolsetQuotas,
    private readonly logger: Pick<Logger, "debug">,
  ) {}

  /** Throws Fault QUOTA_EXCEEDED. */
  async take(namespace: string, caller: Principal, id: string, nowMs: number, idleMs: number): Promise<Counted> {
    const untilMs = countedUntil(nowMs + idleMs, idleMs);
    const slot = { id: slotId(id), untilMs };
    const own = this.#principal(namespace, caller.id);
    const ofPrincipal = own && (await takeSlot(own, slot, nowMs));
    if (own && ofPrincipal === undefined) throw toolsetsFull(this.quotas.perPrincipal, namespace, caller.id);
    const ofNamespace = await takeSlot(this.#namespace(namespace), slot, nowMs);
    if (ofNamespace === undefined) {
      if (own && ofPrincipal !== undefined) await this.#free(own, ofPrincipal, slot.id, nowMs);
      throw toolsetsFull(this.quotas.perNamespace, namespace);
    }
    return { untilMs, ofPrincipal, ofNamespace };
  }

  /** Counts it until it expires and a little longer, so that few uses write more than the toolset itself. */
  async keep(namespace: string, id: string, record: ToolsetRecord, expiresAtMs: number, nowMs: number): Promise<Counted> {
    const { counted, owner, idleMs } = record;
    if (expiresAtMs <= counted.untilMs) return counted;
    const untilMs = countedUntil(expiresAtMs, idleMs);
    const slot = { id: slotId(id), untilMs };
    const own = this.#principal(namespace, owner);
    if (own && counted.ofPrincipal !== undefined) await keepSlot(own, counted.ofPrincipal, slot, nowMs);
    await keepSlot(this.#namespace(namespace), counted.ofNamespace, slot, nowMs);
    return { ...counted, untilMs };
  }

  async free(namespace: string, caller: Principal, id: string, { ofPrincipal, ofNamespace }: Counted, nowMs: number): Promise<void> {
    const own = this.#principal(namespace, caller.id);
    if (own && ofPrincipal !== undefined) await this.#free(own, ofPrincipal, slotId(id), nowMs);
    await this.#free(this.#namespace(namespace), ofNamespace, slotId(id), nowMs);
  }

  /** What cannot be given back now is counted until its time is over: no reason to fail what was done. */
  async #free(book: SlotBook, page: number, id: string, nowMs: number): Promise<void> {
    try {
      await freeSlot(book, page, id, nowMs);
    } catch (err) {
      this.logger.debug({ err }, "a toolset that is gone stays counted for a while");
    }
  }

  #namespace(namespace: string): SlotBook {
    return { notes: this.notesOf(namespace), key: `toolset-slots/${namespace}/all`, pages: NAMESPACE_PAGES, limit: this.quotas.perNamespace };
  }

  /** Undefined for everybody together, who share the namespace's limit. */
  #principal(namespace: string, principal: string): SlotBook | undefined {
    if (principal === EVERYBODY.id) return undefined;
    // An id may hold anything and be of any length.
    const name = createHash("sha256").update(principal).digest("hex").slice(0, 32);
    return { notes: this.notesOf(namespace), key: `toolset-slots/${namespace}/of/${name}`, pages: PRINCIPAL_PAGES, limit: this.quotas.perPrincipal };
  }
}

/** Clocks of replicas may differ by so much. */
const CLOCKS_MS = 5_000;

function countedUntil(expiresAtMs: number, idleMs: number): number {
  return expiresAtMs + idleMs / 4 + CLOCKS_MS;
}

function slotId(id: string): string {
  return id.slice(0, 16);
}
