/** The walk over all pages of `tools/list`. */
import type { Logger } from "../catalogue/ports.js";
import { UpstreamError } from "../catalogue/upstream-port.js";
import { quoted } from "../domain/admission/text.js";
import { LIMITS } from "../domain/limits.js";
import type { Connection } from "./connection.js";
import { isListChanged } from "./connection.js";
import { place, rpcCode } from "./failures.js";
import type { RpcResult } from "./messages.js";
import { elements, members } from "./spans.js";

const INVALID_PARAMS = -32602;
const METHOD_NOT_FOUND = -32601;

/** What all pages of one walk said together. */
export interface Walk {
  /** Tool objects exactly as they stand in the responses, in their order. */
  readonly texts: readonly string[];
  readonly ttlMs: number | undefined;
  /** `private` if any page said so, else what the last page said. */
  readonly cacheScope: string | undefined;
  /** The server said during the walk that its list had changed. */
  readonly changedMeanwhile: boolean;
}

export interface WalkTools {
  readonly endpoint: string;
  readonly connection: Connection;
  readonly logger: Logger;
}

/** Throws UpstreamError. */
export async function walk(tools: WalkTools, signal: AbortSignal): Promise<Walk> {
  try {
    return await walkOnce(tools, signal);
  } catch (error) {
    if (!(error instanceof CursorRefused)) throw error;
    // A list that changed between two pages makes the old cursor invalid; its pages cannot be mixed with new ones.
    tools.logger.debug(
      { endpoint: place(tools.endpoint), err: error.cause },
      "a cursor was refused: the walk starts over",
    );
    return walkOnce(tools, signal);
  }
}

/** The server no longer knows the cursor that it gave. */
class CursorRefused extends UpstreamError {
  constructor(endpoint: string, cursor: string, cause: unknown) {
    super("protocol", `${place(endpoint)} refuses cursor ${quoted(cursor)}, which it had given itself`, cause);
  }
}

interface Gathered {
  readonly texts: string[];
  chars: number;
  ttlMs: number | undefined;
  cacheScope: string | undefined;
}

async function walkOnce(tools: WalkTools, signal: AbortSignal): Promise<Walk> {
  const state: Gathered = { texts: [], chars: 0, ttlMs: undefined, cacheScope: undefined };
  const seen = new Set<string>();
  let changedMeanwhile = false;
  let cursor: string | undefined;
  for (let page = 1; ; page++) {
    const result = await askPage(tools, cursor, signal, () => {
      changedMeanwhile = true;
    });
    if (result === undefined) break;
    addPage(tools.endpoint, state, result);
    const next = nextCursor(tools.endpoint, result);
    if (next === undefined) break;
    if (seen.has(next)) {
      throw broken(tools.endpoint, `goes in circles: cursor ${quoted(next)} came back after page ${page}`);
    }
    if (page >= LIMITS.listingPages) {
      throw broken(tools.endpoint, `does not end: ${page} pages, the limit, and cursor ${quoted(next)} wants more`);
    }
    seen.add(next);
    cursor = next;
  }
  return { texts: state.texts, ttlMs: state.ttlMs, cacheScope: state.cacheScope, changedMeanwhile };
}

/** One page; undefined from a server that has no tools and says so by not knowing the method. */
async function askPage(
  { endpoint, connection }: WalkTools,
  cursor: string | undefined,
  signal: AbortSignal,
  onChanged: () => void,
): Promise<RpcResult | undefined> {
  try {
    return await connection.call("tools/list", cursor === undefined ? {} : { cursor }, signal, (message) => {
      if (isListChanged(message)) onChanged();
    });
  } catch (error) {
    const code = rpcCode(error);
    if (code === INVALID_PARAMS && cursor !== undefined) throw new CursorRefused(endpoint, cursor, error);
    if (code === METHOD_NOT_FOUND && !connection.hasTools) return undefined;
    throw error;
  }
}

function addPage(endpoint: string, state: Gathered, result: RpcResult): void {
  const span = members(result.text, 0).get("tools");
  if (span === undefined || !Array.isArray(result.value["tools"])) {
    throw broken(endpoint, "has a page without a list of tools");
  }
  state.chars += result.text.length;
  if (state.chars > LIMITS.listingBytes) {
    throw new UpstreamError(
      "too-large",
      `${place(endpoint)} lists more than ${LIMITS.listingBytes} bytes over all its pages`,
    );
  }
  const count = state.texts.length + result.value["tools"].length;
  if (count > LIMITS.toolsPerServer) {
    throw new UpstreamError(
      "too-large",
      `${place(endpoint)} lists ${count} tools, the limit is ${LIMITS.toolsPerServer}`,
    );
  }
  for (const { start, end } of elements(result.text, span.start)) state.texts.push(result.text.slice(start, end));
  const { ttlMs, cacheScope } = result.value;
  if (typeof ttlMs === "number" && ttlMs >= 0) state.ttlMs = Math.min(ttlMs, state.ttlMs ?? ttlMs);
  if (typeof cacheScope === "string" && state.cacheScope !== "private") state.cacheScope = cacheScope;
}

/** Only absence ends the list, an empty cursor is a cursor; `null` is how some servers write absence. */
function nextCursor(endpoint: string, { value }: RpcResult): string | undefined {
  const next = value["nextCursor"];
  if (next === undefined || next === null) return undefined;
  if (typeof next === "string") return next;
  throw broken(endpoint, `names a next page by ${typeof next}, not by text`);
}

function broken(endpoint: string, what: string): UpstreamError {
  return new UpstreamError("protocol", `the tool list of ${place(endpoint)} ${what}`);
}
