import { compactOf } from "../../domain/compact.js";
import { splitToolId } from "../../domain/ids.js";
import type { LoadedTool } from "../loader/load.js";
import { Remembered } from "../loader/remembered.js";
import type { Tokenizer } from "./tokens.js";

/** How much of a definition stands in the prompt. `compact`: name, first sentences and the required parameters. */
export type Form = "full" | "compact";

/** An MCP tool object, frozen through and through. Numbers that no double can hold stand only in the text. */
export type ToolDefinition = Readonly<Record<string, unknown>> & { readonly name: string };

/** One tool in one form, as it may go into a prompt. Equal tools are the same object for as long as it is remembered. */
export interface Material {
  readonly toolId: string;
  /** Of the whole definition, whatever the form. */
  readonly digest: string;
  readonly form: Form;
  readonly definition: ToolDefinition;
  /** The definition as JSON text: what its tokens are counted of. */
  readonly text: string;
  readonly tokens: number;
}

/** Makes materials, counting each definition once. */
export class Workbench {
  readonly #tokenizer: Tokenizer;
  readonly #made = new Remembered<Material>(2_000);
  /** Digest → tokens of the whole definition. */
  readonly #counted = new Map<string, number>();

  constructor(tokenizer: Tokenizer) {
    this.#tokenizer = tokenizer;
  }

  get tokenizer(): Tokenizer {
    return this.#tokenizer;
  }

  make({ toolId, digest, bytes }: LoadedTool, form: Form): Material {
    const key = `${form} ${digest} ${toolId}`;
    const made = this.#made.get(key);
    if (made) return made;
    this.count(digest, bytes);
    const text = textOf(form === "full" ? bytes : compactOf(bytes));
    const definition = freeze(JSON.parse(text)) as ToolDefinition;
    const material = Object.freeze({ toolId, digest, form, definition, text, tokens: this.#tokenizer.count(text) });
    this.#made.set(key, material);
    return material;
  }

  /** Of the whole definition; undefined where it was never here. */
  counted(digest: string): number | undefined {
    return this.#counted.get(digest);
  }

  count(digest: string, bytes: Uint8Array): void {
    if (!this.#counted.has(digest)) this.#counted.set(digest, this.#tokenizer.count(textOf(bytes)));
  }
}

/** The bare name of a tool. */
export function nameOf(toolId: string): string {
  return splitToolId(toolId)?.toolName ?? toolId;
}

function textOf(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}

function freeze(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  for (const part of Object.values(value)) freeze(part);
  return Object.freeze(value);
}
