/** What came of calls, told to the registry, so that the next one who looks for the same finds better. */
import { ErrorKind } from "../client/index.js";
import type { ForwardAnswer, ForwardOutcome } from "./forward/api.js";
import type { RegistryLink } from "./registry.js";
import type { Seat } from "./seat.js";
import { recentOf } from "./tools/finding.js";
import { FACTS, type Logger, type Toolset } from "./words.js";

/** Reports under way at once; more are dropped, because no caller waits for them. */
const AT_ONCE = 64;
/** What preconditions and companions ask about. */
const RECENT = 10;
const PRECEDING = 5;

const KINDS: Readonly<Record<ForwardOutcome["errorKind"], ErrorKind | undefined>> = {
  "": ErrorKind.UNSPECIFIED,
  "tool-error": ErrorKind.TOOL_ERROR,
  "rpc-error": ErrorKind.TOOL_ERROR,
  arguments: ErrorKind.INVALID_ARGUMENTS,
  auth: ErrorKind.UNAUTHORIZED,
  credential: ErrorKind.UNAUTHORIZED,
  cancelled: ErrorKind.CANCELLED,
  deadline: ErrorKind.TIMEOUT,
  unreachable: ErrorKind.UNREACHABLE,
  lost: ErrorKind.UNREACHABLE,
  protocol: ErrorKind.UNREACHABLE,
  "too-large": ErrorKind.TOOL_ERROR,
  // These say nothing about the tool.
  "unknown-server": undefined,
  "registry-away": undefined,
  "registry-refused": undefined,
  "no-endpoint": undefined,
  isolated: undefined,
  unavailable: undefined,
  "breaker-open": undefined,
  egress: undefined,
  throttled: undefined,
  busy: undefined,
  closing: undefined,
};

export class Outcomes {
  #underWay = 0;
  #failed = false;

  constructor(
    private readonly registry: RegistryLink,
    private readonly log: Logger,
    private readonly nowMs: () => number,
  ) {}

  /** Starts the clock of one call. */
  begin(): number {
    return this.nowMs();
  }

  /** Tells the registry in the background, and remembers a success in the toolset. */
  report(seat: Seat, toolset: Toolset, toolId: string, answer: ForwardAnswer, begunAtMs: number): void {
    const errorKind = KINDS[kindOf(answer)];
    if (errorKind === undefined || this.#underWay >= AT_ONCE) return;
    const success = errorKind === ErrorKind.UNSPECIFIED;
    const latencyMs = Math.max(0, Math.round(this.nowMs() - begunAtMs));
    const before = recentOf(toolset);
    const recent = [toolId, ...before.filter((id) => id !== toolId)].slice(0, RECENT);
    const told = this.registry.reportOutcome(seat.caller, {
      toolId,
      intent: toolset.facts[FACTS.intent] ?? "",
      success,
      errorKind,
      latency: { seconds: BigInt(Math.floor(latencyMs / 1_000)), nanos: (latencyMs % 1_000) * 1_000_000 },
      precedingTools: before.filter((id) => id !== toolId).slice(0, PRECEDING),
    });
    const kept = success && before[0] !== toolId ? this.#remember(seat, toolset, recent) : undefined;
    this.#underWay++;
    void Promise.allSettled([told, kept]).then((ends) => {
      this.#underWay--;
      this.#note(ends.find((end) => end.status === "rejected")?.reason);
    });
  }

  async #remember({ caller }: Seat, { handle }: Toolset, recent: readonly string[]): Promise<void> {
    // Without an etag: whatever else changed meanwhile stays.
    await this.registry.updateToolset(caller, { handle, setFacts: { [FACTS.recent]: recent.join(" ") } });
  }

  /** The first failure in a row is worth a line; the calls themselves were made. */
  #note(error: unknown): void {
    if (error !== undefined && !this.#failed) this.log.info({ err: String(error) }, "outcomes of calls cannot be reported now");
    this.#failed = error !== undefined;
  }
}

function kindOf(answer: ForwardAnswer): ForwardOutcome["errorKind"] {
  if (answer.kind === "result") return answer.value["isError"] === true ? "tool-error" : "";
  return answer.kind === "rpc-error" ? "rpc-error" : answer.reason;
}
