/** A call to somebody else's tool: whether it can be made now, what came of it, and who hears of that. */
import type { Catalogue } from "./catalogue.js";
import type { Forwarder } from "./forward/api.js";
import type { Outcomes } from "./outcomes.js";
import type { Era } from "./presented.js";
import type { Seat } from "./seat.js";
import { FACTS, type Line, RpcError, type Result, type Toolset, toolError } from "./words.js";

/** `params` of a `tools/call`, beside the name. */
export interface CallParams {
  readonly args: unknown;
  readonly meta: Readonly<Record<string, unknown>> | undefined;
  /** `inputResponses` and `requestState` of 2026-07-28. */
  readonly more: Readonly<Record<string, unknown>> | undefined;
}

const SEVERITIES = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

export class Calling {
  constructor(
    private readonly namespace: string,
    private readonly catalogue: Catalogue,
    private readonly forwarder: Forwarder,
    private readonly outcomes: Outcomes,
    private readonly era: Era,
  ) {}

  /** The tool was found to be in the toolset. Rejects with RpcError where the server answered with one. */
  async call(seat: Seat, toolset: Toolset, toolId: string, params: CallParams, line: Line): Promise<Result> {
    const problem = this.#cannot(toolId);
    if (problem !== undefined) return toolError(problem);
    const least = SEVERITIES.indexOf(toolset.facts[FACTS.log] ?? "");
    const begunAtMs = this.outcomes.begin();
    const answer = await this.forwarder.call({
      namespace: this.namespace,
      toolId,
      args: params.args,
      meta: params.meta,
      more: params.more,
      clientCapabilities: seat.clientCapabilities,
      signal: line.signal,
      onProgress: params.meta?.["progressToken"] === undefined ? undefined : (told) => line.notify("notifications/progress", told),
      onLog: (told) => {
        if (SEVERITIES.indexOf(String(told["level"])) >= least) line.notify("notifications/message", told);
      },
      credential: seat.caller.upstream,
      session: toolset.handle,
    });
    this.outcomes.report(seat, toolset, toolId, answer, begunAtMs);
    switch (answer.kind) {
      case "result":
        return presentedResult(answer.value, answer.text, answer.stale || this.catalogue.stale !== "", this.era);
      case "rpc-error":
        throw new RpcError(answer.code, answer.message, answer.data);
      case "refused":
        return toolError(answer.text + this.#instead(toolId));
    }
  }

  /** Why the tool cannot be called now, as the catalogue knows it; undefined where it can. */
  #cannot(toolId: string): string | undefined {
    if (!this.catalogue.known) return undefined;
    const standing = this.catalogue.standing(toolId);
    if (standing === "gone")
      return `The tool ${toolId} is not registered any more, or it was withheld. Call find_tools again for one that does the same.`;
    if (standing === "away") return `The server of ${toolId} does not answer now, so nothing was called. Try again later${this.#instead(toolId)}`;
    return undefined;
  }

  #instead(toolId: string): string {
    const substitutes = this.catalogue.tool(toolId)?.substitutes ?? [];
    return substitutes.length === 0 ? "" : `; instead you could use ${substitutes.join(", ")} (find_tools loads it).`;
  }
}

/** Marks an answer that was given on the word of a registry that is away. */
export const STALE_META = "toolcrib/stale";

/** The server's own text wherever nothing has to be added or taken out. */
export function presentedResult(value: Readonly<Record<string, unknown>>, text: string, stale: boolean, era: Era): Result {
  const structured = value["structuredContent"];
  // Older clients know structured content as an object only, and refuse the whole answer for another.
  const unreadable = era === "sessions" && structured !== undefined && (typeof structured !== "object" || structured === null || Array.isArray(structured));
  if (!stale && !unreadable) return era === "sessions" ? { kind: "text", text } : { kind: "object", value };
  const { structuredContent: _unreadable, ...rest } = value;
  const meta = typeof value["_meta"] === "object" ? { ...value["_meta"] } : {};
  return {
    kind: "object",
    value: { ...(unreadable ? rest : value), ...(stale && { _meta: { ...meta, [STALE_META]: true } }) },
  };
}
