import type { RegistryApi } from "../catalogue/api.js";
import { type Answer, sizeOf } from "./services/method.js";

/** Bytes of answers kept; beyond that all are dropped, and the ones still asked for come back. */
const KEPT_BYTES = 32 * 1024 * 1024;
/** What an entry costs beside its answer. */
const ENTRY_BYTES = 256;
/** Longer requests are rare, and their text would cost more than it saves. */
const REQUEST_BYTES = 512;

interface Kept {
  readonly version: number;
  readonly answer: Answer;
}

/**
 * Whole answers by caller and encoded request. Agents ask the same few questions again and again; as long as the catalogue
 * stands still, the same bytes are the same question. Callers are told apart by their use-cases, which carry their rights.
 */
export class AnswerCache {
  private readonly kept = new Map<string, Kept>();
  private readonly callers = new WeakMap<RegistryApi, number>();
  private lastCaller = 0;
  private bytes = 0;

  /** The key of a request; undefined when it is not worth keeping. */
  key(api: RegistryApi, method: string, request: Buffer): string | undefined {
    if (request.byteLength > REQUEST_BYTES) return undefined;
    return `${this.callerOf(api)} ${method} ${request.toString("latin1")}`;
  }

  get(key: string, version: number): Answer | undefined {
    const found = this.kept.get(key);
    return found?.version === version ? found.answer : undefined;
  }

  /** `version` is the one that stood before the answer was made. */
  put(key: string, version: number, answer: Answer): void {
    const known = this.kept.get(key);
    if (known) this.bytes -= costOf(known.answer);
    this.bytes += costOf(answer);
    if (this.bytes > KEPT_BYTES) {
      this.kept.clear();
      this.bytes = costOf(answer);
    }
    this.kept.set(key, { version, answer });
  }

  private callerOf(api: RegistryApi): number {
    const known = this.callers.get(api);
    if (known !== undefined) return known;
    this.callers.set(api, ++this.lastCaller);
    return this.lastCaller;
  }
}

/** Parts may be views of what the catalogue holds anyway; when that goes they are all that keeps it, so they count. */
function costOf(answer: Answer): number {
  return sizeOf(answer) + ENTRY_BYTES;
}
