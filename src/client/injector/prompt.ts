import type { Material } from "./material.js";

/** A tool in the prompt. */
export interface InjectedTool extends Material {
  /**
   * Its name in this conversation, by which it is called: the tool_id, or in append mode `tool_id@2`, `tool_id@3` … for what was
   * appended later of the same tool.
   */
  readonly key: string;
}

/**
 * `replace`: the prompt holds what this turn needs and nothing else. `append`: what once stands in it never changes, moves or
 * leaves, so that a provider's prompt cache holds; tools are only put behind it, and one that left is only refused.
 */
export type PromptMode = "replace" | "append";

/** How a prompt came to be another one. */
export interface PromptStep {
  /** What the prompt holds now, in its order. */
  readonly tools: readonly InjectedTool[];
  readonly add: readonly InjectedTool[];
  /** In append mode they stay where they are, and are refused. */
  readonly remove: readonly InjectedTool[];
  /** As many of `tools` stood there before, unchanged and in this order: a cache breakpoint belongs behind them. */
  readonly breakpoint: number;
}

/** The tools of one prompt through its turns. */
export class Prompt {
  readonly #mode: PromptMode;
  #tools: readonly InjectedTool[] = [];
  #active: ReadonlySet<InjectedTool> = new Set();
  /** As it was last given out. */
  #given: readonly InjectedTool[] = [];

  constructor(mode: PromptMode) {
    this.#mode = mode;
  }

  /** What the prompt holds, in its order. */
  get tools(): readonly InjectedTool[] {
    return this.#tools;
  }

  /** What may be called. */
  get active(): readonly InjectedTool[] {
    return this.#tools.filter((tool) => this.#active.has(tool));
  }

  /** Tools that stay keep their order; others come behind them in the order given. Each tool at most once. */
  step(wanted: readonly Material[]): PromptStep {
    const before = this.#tools;
    const wasActive = this.#active;
    const add: InjectedTool[] = [];
    const active = new Set<InjectedTool>();
    for (const material of wanted) {
      const there = before.find((tool) => isSame(tool, material));
      const tool = there ?? Object.freeze({ ...material, key: this.#keyFor(material.toolId, add) });
      if (!there) add.push(tool);
      active.add(tool);
    }
    const stay = this.#mode === "append" ? before : before.filter((tool) => active.has(tool));
    this.#tools = Object.freeze([...stay, ...add]);
    this.#active = active;
    const given = this.#given;
    this.#given = this.#tools;
    // What was taken back into use is told of like what is new: the model may call it again.
    const again = stay.filter((tool) => active.has(tool) && !wasActive.has(tool));
    return {
      tools: this.#tools,
      add: [...again, ...add],
      remove: [...wasActive].filter((tool) => !active.has(tool)),
      breakpoint: firstDifference(given, this.#tools),
    };
  }

  /** Begins the prompt anew with what may be called now: shorter, and unknown to any cache. */
  rebase(): void {
    this.#tools = Object.freeze(this.active);
  }

  #keyFor(toolId: string, added: readonly InjectedTool[]): string {
    if (this.#mode === "replace") return toolId;
    const taken = new Set([...this.#tools, ...added].map((tool) => tool.key));
    let key = toolId;
    for (let version = 2; taken.has(key); version++) key = `${toolId}@${version}`;
    return key;
  }
}

function isSame(a: Material, b: Material): boolean {
  return a.toolId === b.toolId && a.digest === b.digest && a.form === b.form;
}

/** How many stand at the beginning of both. */
function firstDifference(before: readonly InjectedTool[], after: readonly InjectedTool[]): number {
  let at = 0;
  while (at < before.length && before[at] === after[at]) at++;
  return at;
}
