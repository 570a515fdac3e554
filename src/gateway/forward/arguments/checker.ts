/** Whether arguments fit a definition. In doubt they do: the server has the last word. */
import { Ajv, type ErrorObject, type ValidateFunction } from "ajv";
import { Ajv2019 } from "ajv/dist/2019.js";
import { Ajv2020 } from "ajv/dist/2020.js";
import type { CheckedDefinition } from "../api.js";
import { within } from "./bounded.js";
import { mismatchText } from "./mismatch.js";
import { findNested, nestedText } from "./nesting.js";
import { isObject, softened } from "./soften.js";

type Json = Readonly<Record<string, unknown>>;

/** Larger schemas and arguments go unchecked: reading them would hold up everybody else. */
const SCHEMA_BYTES = 256 * 1024;
const ARGUMENT_BYTES = 256 * 1024;
/** Time to make a schema ready, once, and to check one call, in ms. What takes longer goes unchecked from then on. */
export interface CheckingTime {
  readonly compileMs: number;
  readonly checkMs: number;
}
const TIME: CheckingTime = { compileMs: 250, checkMs: 25 };
/** Schemas held ready, some 100 KB each; the one that was used longest ago goes first. */
const READY = 300;

interface Ready {
  readonly inputSchema: Json | undefined;
  /** Undefined: it is not checked. */
  readonly validate: ValidateFunction | undefined;
}

export interface Checked {
  /** What does not fit, and what would; undefined: nothing speaks against the call. */
  readonly problem: string | undefined;
  /** Of the definition, for headers; undefined: it cannot be read. */
  readonly inputSchema: Json | undefined;
}

export class ArgumentChecker {
  readonly #ready = new Map<string, Ready>();
  readonly #time: CheckingTime;

  constructor(time = TIME) {
    this.#time = time;
  }

  /** `args` are what goes on the wire, undefined for none. */
  check(definition: CheckedDefinition, args: unknown): Checked {
    const { digest, freshness } = definition;
    const { inputSchema, validate } = this.#readyOf(definition);
    // A definition that may be out of date is no reason to refuse what the server may take.
    if (!inputSchema || freshness === "stale") return { problem: undefined, inputSchema };
    const nested = findNested(args, inputSchema);
    if (nested) return { problem: nestedText(nested), inputSchema };
    const errors = validate && this.#errors(digest, validate, args ?? {});
    return { problem: errors && mismatchText(errors, inputSchema), inputSchema };
  }

  #errors(digest: string, validate: ValidateFunction, args: unknown): readonly ErrorObject[] | undefined {
    if (JSON.stringify(args).length > ARGUMENT_BYTES) return undefined;
    try {
      return within(this.#time.checkMs, () => (validate(args) ? undefined : (validate.errors ?? undefined)));
    } catch {
      // Endless recursion, or alternatives without end: such a schema is not asked again.
      const known = this.#ready.get(digest);
      this.#keep(digest, { inputSchema: known?.inputSchema, validate: undefined });
      return undefined;
    }
  }

  #readyOf({ digest, bytes }: CheckedDefinition): Ready {
    const known = this.#ready.get(digest);
    return this.#keep(digest, known ?? readyFrom(bytes, this.#time));
  }

  #keep(digest: string, ready: Ready): Ready {
    this.#ready.delete(digest);
    this.#ready.set(digest, ready);
    for (const oldest of this.#ready.keys()) {
      if (this.#ready.size <= READY) break;
      this.#ready.delete(oldest);
    }
    return ready;
  }
}

const NOT_CHECKED: Ready = { inputSchema: undefined, validate: undefined };

function readyFrom(bytes: Uint8Array, { compileMs }: CheckingTime): Ready {
  const inputSchema = inputSchemaFrom(bytes);
  if (!inputSchema) return NOT_CHECKED;
  if (bytes.byteLength > SCHEMA_BYTES) return { inputSchema, validate: undefined };
  try {
    return { inputSchema, validate: within(compileMs, () => compiled(inputSchema)) };
  } catch {
    return { inputSchema, validate: undefined };
  }
}

function inputSchemaFrom(bytes: Uint8Array): Json | undefined {
  try {
    const tool: unknown = JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8"));
    return isObject(tool) && isObject(tool["inputSchema"]) ? tool["inputSchema"] : undefined;
  } catch {
    return undefined;
  }
}

const OPTIONS = {
  strict: false,
  allErrors: true,
  verbose: true,
  validateSchema: false,
  validateFormats: false,
  meta: false,
  // A reference that is copied into each place that names it can make a small schema a huge program.
  inlineRefs: false,
  ownProperties: true,
  unicodeRegExp: true,
  // 19.99 is a multiple of 0.01 to everybody but a computer.
  multipleOfPrecision: 6,
  logger: false,
} as const;

/** Each with an Ajv of its own: `$id`s of one registrant mean nothing to another's. Throws what Ajv throws. */
function compiled(inputSchema: Json): ValidateFunction | undefined {
  const kind = dialectOf(inputSchema["$schema"]);
  if (!kind) return undefined;
  // The dialect is chosen; its meta-schema is not there to be looked up.
  const { $schema: _, ...schema } = softened(inputSchema, kind === Ajv);
  return new kind(OPTIONS).compile(schema);
}

type Dialect = new (options: typeof OPTIONS) => Pick<Ajv, "compile">;

/** 2020-12 where nothing is said, as MCP has it. Undefined: none that is checked here. */
function dialectOf(uri: unknown): Dialect | undefined {
  if (uri === undefined) return Ajv2020;
  const said = typeof uri === "string" ? uri.replace(/^https?:\/\/json-schema\.org\//, "").replace(/#$/, "") : "";
  if (said === "draft/2020-12/schema") return Ajv2020;
  if (said === "draft/2019-09/schema") return Ajv2019;
  return said === "draft-07/schema" || said === "draft-06/schema" ? Ajv : undefined;
}
