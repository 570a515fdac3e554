/**
 * Toolsets in Notes: any replica finds one by its handle, and no replica holds anything of it. Its note ends by itself when
 * nobody used it for its idle time.
 */
import { Fault, invalidRequest, noSuchToolset, type Violation } from "../../domain/fault.js";
import { checkEtag, checkFactNames, checkFacts, checkHandle, checkIdle, checkRemoved, checkToolIds } from "../../domain/admission/toolset.js";
import { nameViolations } from "../../domain/admission/names.js";
import { EVERYBODY, type Principal } from "../../domain/identity.js";
import { DEFAULT_NAMESPACE } from "../../domain/ids.js";
import { LIMITS } from "../../domain/limits.js";
import { DEFAULT_TOOLSET_QUOTAS, type ToolsetQuotas } from "../../domain/quotas.js";
import type { Clock, Logger, Note, Notes, Random } from "../ports.js";
import { placementOf } from "../placement.js";
import type { CreateToolset, Toolset, ToolsetName, ToolsetsApi, UpdateToolset } from "./api.js";
import { ToolsetCount } from "./count.js";
import { decodeRecord, encodeRecord, type ToolsetRecord } from "./record.js";

export type ToolsetHappening = "created" | "touched" | "updated" | "deleted" | "absent" | "conflict" | "refused";

export interface ToolsetsDeps {
  readonly notesOf: (namespace: string) => Notes;
  readonly clock: Pick<Clock, "now">;
  readonly random: Pick<Random, "id">;
  readonly logger: Pick<Logger, "debug">;
  /** DEFAULT_TOOLSET_QUOTAS if unsaid. */
  readonly quotas?: ToolsetQuotas;
  readonly onHappening?: (what: ToolsetHappening) => void;
}

/** A toolset as it was read, and where. */
interface Held {
  readonly namespace: string;
  readonly handle: string;
  readonly key: string;
  readonly note: Note;
  readonly record: ToolsetRecord;
}

/** Each try that fails is a change of somebody else's. */
const TRIES = 32;

const HANDLE = /^ts-([0-9a-f]{8})-([0-9a-f]{32})$/;

export class Toolsets implements ToolsetsApi {
  readonly #count: ToolsetCount;

  constructor(private readonly deps: ToolsetsDeps) {
    this.#count = new ToolsetCount(deps.notesOf, deps.quotas ?? DEFAULT_TOOLSET_QUOTAS, deps.logger);
  }

  async create(input: CreateToolset, caller: Principal = EVERYBODY): Promise<Toolset> {
    refuseAny([
      ...checkNamespace(input.namespace),
      ...checkToolIds("tool_ids", input.toolIds),
      ...checkFactNames("facts", [...input.facts.keys()]),
      ...checkFacts("facts", input.facts),
      ...checkIdle(input.idleMs),
    ]);
    const namespace = input.namespace || DEFAULT_NAMESPACE;
    const id = this.deps.random.id();
    const handle = `ts-${placementOf(namespace)}-${id}`;
    const nowMs = this.deps.clock.now();
    const idleMs = input.idleMs ?? LIMITS.toolsetIdleDefaultMs;
    const counted = await this.#telling("refused", () => this.#count.take(namespace, caller, id, nowMs, idleMs));
    const record: ToolsetRecord = {
      owner: caller.id,
      toolIds: input.toolIds,
      facts: input.facts,
      changes: 1,
      idleMs,
      createdAtMs: nowMs,
      expiresAtMs: nowMs + idleMs,
      counted,
      beyond: {},
    };
    // A put whose answer is lost may have been made: what is counted for it stays counted until its time is over.
    const version = await this.deps.notesOf(namespace).put(keyOf(namespace, id), encodeRecord(record), idleMs, 0);
    if (version === undefined) throw new Error("the id of a new toolset was there before");
    this.#tell("created");
    return shown(handle, record);
  }

  async get(name: ToolsetName & { readonly touch: boolean }, caller: Principal = EVERYBODY): Promise<Toolset> {
    refuseAny([...checkNamespace(name.namespace), ...checkHandle(name.handle)]);
    const held = await this.#held(name, caller);
    return shown(held.handle, name.touch ? await this.#touch(held, caller) : held.record);
  }

  async update(input: UpdateToolset, caller: Principal = EVERYBODY): Promise<Toolset> {
    refuseAny(checkUpdate(input));
    for (let attempt = 0; attempt < TRIES; attempt++) {
      const held = await this.#held(input, caller);
      this.#expect(input.etag, held.record);
      const facts = changedFacts(held.record.facts, input);
      refuseAny(checkFacts("set_facts", facts));
      const { toolIds = held.record.toolIds, idleMs = held.record.idleMs } = input;
      const changed = { ...held.record, toolIds, facts, idleMs, changes: held.record.changes + 1 };
      const written = await this.#write(held, changed);
      if (!written) continue;
      this.#tell("updated");
      return shown(held.handle, written);
    }
    throw this.#conflict();
  }

  async remove(name: ToolsetName & { readonly etag: string }, caller: Principal = EVERYBODY): Promise<boolean> {
    refuseAny([...checkNamespace(name.namespace), ...checkHandle(name.handle), ...checkEtag(name.etag)]);
    for (let attempt = 0; attempt < TRIES; attempt++) {
      const held = await this.#find(name, caller);
      if (!held) return false;
      this.#expect(name.etag, held.record);
      if (!(await this.deps.notesOf(held.namespace).remove(held.key, held.note.version))) continue;
      await this.#count.free(held.namespace, caller, idOf(held.handle), held.record.counted, this.deps.clock.now());
      this.#tell("deleted");
      return true;
    }
    throw this.#conflict();
  }

  /** Answers the record as it is after the use. Where little of the idle time is gone nothing is written. */
  async #touch(first: Held, caller: Principal): Promise<ToolsetRecord> {
    let held = first;
    for (let attempt = 0; attempt < TRIES; attempt++) {
      const { record } = held;
      if (this.deps.clock.now() + record.idleMs - record.expiresAtMs < record.idleMs / 10) return record;
      const written = await this.#write(held, record).catch((thrown: unknown) => {
        // Reads go on where the store is full; the answer shows that its time was not moved.
        if (thrown instanceof Fault && thrown.reason === "STORE_FULL") return record;
        throw thrown;
      });
      if (written) {
        if (written !== record) this.#tell("touched");
        return written;
      }
      held = await this.#held(held, caller);
    }
    // Others changed it all the time, which is use enough.
    return held.record;
  }

  /** Writes the record with its idle time begun anew; undefined when somebody else was faster. */
  async #write(held: Held, record: ToolsetRecord): Promise<ToolsetRecord | undefined> {
    const nowMs = this.deps.clock.now();
    const expiresAtMs = nowMs + record.idleMs;
    // Counted first: what lives is always counted.
    const counted = await this.#count.keep(held.namespace, idOf(held.handle), record, expiresAtMs, nowMs);
    const next = { ...record, expiresAtMs, counted };
    const version = await this.deps.notesOf(held.namespace).put(held.key, encodeRecord(next), record.idleMs, held.note.version);
    return version === undefined ? undefined : next;
  }

  async #held(name: ToolsetName, caller: Principal): Promise<Held> {
    const held = await this.#find(name, caller);
    if (held) return held;
    this.#tell("absent");
    throw noSuchToolset();
  }

  async #find(name: ToolsetName, caller: Principal): Promise<Held | undefined> {
    const namespace = name.namespace || DEFAULT_NAMESPACE;
    const [, placement, id] = HANDLE.exec(name.handle) ?? [];
    if (!id || placement !== placementOf(namespace)) return undefined;
    const key = keyOf(namespace, id);
    const note = await this.deps.notesOf(namespace).get(key);
    if (!note) return undefined;
    const record = decodeRecord(note.bytes);
    return record.owner === caller.id ? { namespace, handle: name.handle, key, note, record } : undefined;
  }

  #expect(etag: string, record: ToolsetRecord): void {
    const current = etagOf(record);
    if (etag === "" || etag === current) return;
    this.#tell("conflict");
    const message = `the toolset's etag is ${current} now: get it, and decide again`;
    throw new Fault("ETAG_MISMATCH", message, { metadata: { etag: current } });
  }

  #conflict(): Fault {
    this.#tell("conflict");
    return new Fault("WRITE_CONFLICT", "others kept changing this toolset; try again", { retryAfterMs: 100 });
  }

  async #telling<T>(what: ToolsetHappening, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (thrown) {
      if (thrown instanceof Fault && thrown.reason === "QUOTA_EXCEEDED") this.#tell(what);
      throw thrown;
    }
  }

  #tell(what: ToolsetHappening): void {
    this.deps.onHappening?.(what);
  }
}

function checkUpdate(input: UpdateToolset): Violation[] {
  const twice = input.removeFacts.filter((name) => input.setFacts.has(name));
  return [
    ...checkNamespace(input.namespace),
    ...checkHandle(input.handle),
    ...checkEtag(input.etag),
    ...(input.toolIds ? checkToolIds("tools.tool_ids", input.toolIds) : []),
    ...checkFactNames("set_facts", [...input.setFacts.keys()]),
    ...checkFacts("set_facts", input.setFacts),
    ...checkRemoved(input.removeFacts),
    ...twice.map((name) => ({ field: "remove_facts", description: `${name} is in set_facts as well: it can only stay or go` })),
    ...checkIdle(input.idleMs),
  ];
}

function changedFacts(facts: ReadonlyMap<string, string>, { setFacts, removeFacts }: UpdateToolset): ReadonlyMap<string, string> {
  const changed = new Map(facts);
  for (const name of removeFacts) changed.delete(name);
  for (const [name, value] of setFacts) changed.set(name, value);
  return changed;
}

function checkNamespace(namespace: string): Violation[] {
  return namespace === "" ? [] : nameViolations("namespace", "namespace", namespace);
}

function refuseAny(violations: readonly Violation[]): void {
  if (violations.length > 0) throw invalidRequest(violations);
}

function keyOf(namespace: string, id: string): string {
  return `toolset/${namespace}/${id}`;
}

function idOf(handle: string): string {
  return handle.slice(-32);
}

function etagOf({ changes }: ToolsetRecord): string {
  return String(changes);
}

function shown(handle: string, record: ToolsetRecord): Toolset {
  const { toolIds, facts, idleMs, expiresAtMs, createdAtMs } = record;
  return { handle, toolIds, facts, etag: etagOf(record), idleMs, expiresAtMs, createdAtMs };
}
