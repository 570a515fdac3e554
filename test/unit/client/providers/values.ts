import { Ajv, type ValidateFunction } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import { generateSync } from "json-schema-faker";
import { expect } from "vitest";
import type { ToolInput } from "../../../../src/client/providers/index.js";
import type { Exported } from "./tool-sets.js";

type Schema = Record<string, unknown>;
const SETTINGS = { strict: false, validateFormats: false, validateSchema: false, logger: false } as const;

/** What the tool itself accepts; undefined where its own schema cannot be compiled. */
function compiled(schema: Schema): ValidateFunction | undefined {
  try {
    const old = /draft-0[47]/.test(String(schema["$schema"]));
    return (old ? new Ajv(SETTINGS) : new Ajv2020(SETTINGS)).compile(schema);
  } catch {
    return undefined;
  }
}

/**
 * A schema that refers to itself without an end compiles, but overflows the stack when it is used; and for some that combine
 * `unevaluatedProperties` with branches, ajv makes code that misses a variable of its own. Nothing is known then.
 */
function judged(accepts: ValidateFunction, value: unknown): boolean | undefined {
  try {
    return accepts(value) as boolean;
  } catch (error) {
    if (error instanceof RangeError || (error instanceof ReferenceError && /^(props|items)\d+ is not defined$/.test(error.message))) return undefined;
    throw error;
  }
}

/** Gemini's own message as the JSON Schema that it stands for. */
function asJsonSchema(message: unknown): unknown {
  if (Array.isArray(message)) return message.map(asJsonSchema);
  if (typeof message !== "object" || message === null) return message;
  const { nullable, type, properties, items, anyOf, format: _format, ...rest } = message as Schema;
  const own = Object.fromEntries(
    Object.entries(rest).map(([key, value]) => [key, /^(min|max)(Items|Length|Properties)$/.test(key) ? Number(value) : value]),
  );
  const schema = {
    ...own,
    ...(type === undefined ? {} : { type: String(type).toLowerCase() }),
    ...(items === undefined ? {} : { items: asJsonSchema(items) }),
    ...(anyOf === undefined ? {} : { anyOf: asJsonSchema(anyOf) }),
    ...(properties === undefined
      ? {}
      : { properties: Object.fromEntries(Object.entries(properties as Schema).map(([k, v]) => [k, asJsonSchema(v)])) }),
  };
  return nullable === true ? { anyOf: [schema, { type: "null" }] } : schema;
}

export interface Counts {
  tools: number;
  /** Values of the tool, there and back. */
  there: number;
  /** Values of the export, back to the tool. */
  back: number;
  /** Values that the export does not take, and its report says that it takes less. */
  narrowed: number;
  /** Tools for which no value could be made that they accept. */
  without: string[];
}

function generated(schema: Schema, seed: number): unknown {
  try {
    return generateSync(schema as Parameters<typeof generateSync>[0], {
      seed,
      maxItems: 3,
      optionalsProbability: [0, 0.3, 0.7, 1][seed % 4] as number,
      alwaysFakeOptionals: seed % 4 === 3,
      fillProperties: false,
      refDepthMax: 3,
    });
  } catch {
    return undefined;
  }
}

const plain = (value: unknown) => JSON.parse(JSON.stringify(value));

/**
 * Values made from each tool's schema: the export accepts what the tool accepts, and mapping back gives the value again. And
 * values made from the export: where its report tells of nothing wider, the tool accepts them once they are mapped back.
 */
export function checkValues(name: string, inputs: readonly ToolInput[], exported: Exported, seeds: number[]): Counts {
  const { box, read } = exported;
  const counts: Counts = { tools: 0, there: 0, back: 0, narrowed: 0, without: [] };
  const definitions = new Map(inputs.map((input) => [input.toolId, input.definition]));
  for (const report of box.report.tools) {
    if (report.outcome === "refused") continue;
    const given = definitions.get(report.toolId);
    const definition = given instanceof Uint8Array ? JSON.parse(Buffer.from(given).toString()) : plain(given);
    const original: Schema = definition.inputSchema;
    const accepts = compiled(original);
    const tool = box.exported.find((t) => t.toolId === report.toolId);
    if (!accepts || !tool) continue;
    counts.tools++;
    const schema = (name === "gemini-subset" ? asJsonSchema(tool.schema) : tool.schema) as Schema;
    const takes = new Ajv2020(SETTINGS).compile(schema);
    const wider = report.outcome === "lossy" && report.losses.some((loss) => loss.effect === "wider");
    const narrower = report.outcome === "lossy" && report.losses.some((loss) => loss.effect === "narrower");
    let made = 0;
    for (const seed of seeds) {
      const about: string = `${name} ${report.toolId} seed ${seed}`;
      const value = generated(original, seed);
      if (value !== undefined && judged(accepts, value)) {
        made++;
        counts.there++;
        const there = box.argumentsFor(report.toolId, plain(value)) as object;
        if (!takes(there) && narrower) {
          counts.narrowed++;
          continue;
        }
        if (!takes(there)) expect.fail(`${about}: ${JSON.stringify(takes.errors)} for ${JSON.stringify(there)}`);
        const answer = read(report.name, there);
        if (!answer.ok) expect.fail(`${about}: ${answer.problem.message}`);
        else expect([answer.call.toolId, answer.call.arguments], about).toEqual([report.toolId, plain(value)]);
      }
      const sent = wider ? undefined : generated(schema, seed);
      if (sent !== undefined && takes(sent)) {
        counts.back++;
        const answer = read(report.name, sent as object);
        if (!answer.ok) expect.fail(`${about}: ${answer.problem.message}`);
        else if (judged(accepts, answer.call.arguments) === false)
          expect.fail(`${about}: ${JSON.stringify(accepts.errors)} for ${JSON.stringify(sent)}`);
      }
    }
    if (made === 0) counts.without.push(report.toolId);
  }
  return counts;
}
