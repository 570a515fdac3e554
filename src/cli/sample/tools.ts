/** The sample server's tools, written as they go over the wire, with what they do. */

type Arguments = Readonly<Record<string, unknown>>;

export interface SampleTool {
  readonly definition: { readonly name: string; readonly [key: string]: unknown };
  /** Answers text; throws an Error that tells the caller what is wrong with the arguments. */
  readonly run: (given: Arguments) => string;
}

const READ_ONLY = { readOnlyHint: true, openWorldHint: false };

/** Metres, kilograms and seconds of one unit. */
const UNITS: Readonly<Record<string, readonly [kind: string, factor: number]>> = {
  mm: ["length", 0.001],
  cm: ["length", 0.01],
  m: ["length", 1],
  km: ["length", 1000],
  in: ["length", 0.0254],
  ft: ["length", 0.3048],
  mi: ["length", 1609.344],
  g: ["mass", 0.001],
  kg: ["mass", 1],
  oz: ["mass", 0.028349523125],
  lb: ["mass", 0.45359237],
  s: ["time", 1],
  min: ["time", 60],
  h: ["time", 3600],
  d: ["time", 86400],
};

const CONVERT_UNITS: SampleTool = {
  definition: {
    name: "convert_units",
    title: "Convert units",
    description: "Converts a length, mass, time or temperature from one unit to another.",
    inputSchema: {
      type: "object",
      properties: {
        value: { type: "number", description: "How much." },
        from: { type: "string", enum: [...Object.keys(UNITS), "C", "F", "K"], description: "The unit it is in." },
        to: { type: "string", enum: [...Object.keys(UNITS), "C", "F", "K"], description: "The unit wanted." },
      },
      required: ["value", "from", "to"],
      additionalProperties: false,
    },
    annotations: READ_ONLY,
  },
  run(given) {
    const { value } = given;
    if (typeof value !== "number") throw new Error("value must be a number");
    const from = textOf(given, "from");
    const to = textOf(given, "to");
    return `${Number(convert(value, from, to).toPrecision(12))} ${to}`;
  },
};

function convert(value: number, from: string, to: string): number {
  const temperatures = ["C", "F", "K"];
  if (temperatures.includes(from) && temperatures.includes(to)) {
    const kelvin = from === "K" ? value : from === "C" ? value + 273.15 : ((value - 32) * 5) / 9 + 273.15;
    return to === "K" ? kelvin : to === "C" ? kelvin - 273.15 : ((kelvin - 273.15) * 9) / 5 + 32;
  }
  const [kindFrom, factorFrom] = UNITS[from] ?? [];
  const [kindTo, factorTo] = UNITS[to] ?? [];
  if (factorFrom === undefined || factorTo === undefined || kindFrom !== kindTo) {
    throw new Error(`${from} cannot be converted to ${to}`);
  }
  return (value * factorFrom) / factorTo;
}

const WORD_COUNT: SampleTool = {
  definition: {
    name: "word_count",
    title: "Count words",
    description: "Counts the words, characters, sentences and lines of a text. Works for scripts without spaces, too.",
    inputSchema: {
      type: "object",
      properties: { text: { type: "string", description: "The text." } },
      required: ["text"],
      additionalProperties: false,
    },
    annotations: READ_ONLY,
  },
  run(given) {
    const text = textOf(given, "text");
    const count = (granularity: "word" | "sentence" | "grapheme"): Intl.SegmentData[] => [
      ...new Intl.Segmenter(undefined, { granularity }).segment(text),
    ];
    const words = count("word").filter((segment) => segment.isWordLike).length;
    const lines = text === "" ? 0 : text.split("\n").length;
    return JSON.stringify({ words, characters: count("grapheme").length, sentences: count("sentence").length, lines });
  },
};

const DAYS_BETWEEN: SampleTool = {
  definition: {
    name: "days_between",
    title: "Days between dates",
    description: "Counts the days from one calendar date to another. Negative when the second date is earlier.",
    inputSchema: {
      type: "object",
      properties: {
        from: { type: "string", format: "date", description: "The first date, YYYY-MM-DD." },
        to: { type: "string", format: "date", description: "The second date, YYYY-MM-DD." },
      },
      required: ["from", "to"],
      additionalProperties: false,
    },
    annotations: READ_ONLY,
  },
  run(given) {
    const days = (dayOf(textOf(given, "to"), "to") - dayOf(textOf(given, "from"), "from")) / 86_400_000;
    return `${days}`;
  },
};

function dayOf(text: string, name: string): number {
  const at = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN;
  if (Number.isNaN(at) || !new Date(at).toISOString().startsWith(text)) {
    throw new Error(`${name} is not a date in the form YYYY-MM-DD: ${text}`);
  }
  return at;
}

const SORT_LINES: SampleTool = {
  definition: {
    name: "sort_lines",
    title: "Sort lines",
    description:
      "Sorts the lines of a text, by letters or by the numbers they begin with, and drops repeated ones if asked.",
    inputSchema: {
      type: "object",
      properties: {
        text: { type: "string", description: "The lines." },
        by: { type: "string", enum: ["letters", "numbers"], default: "letters", description: "What to sort by." },
        unique: { type: "boolean", default: false, description: "Keep only one of equal lines." },
      },
      required: ["text"],
      additionalProperties: false,
    },
    annotations: READ_ONLY,
  },
  run(given) {
    const lines = textOf(given, "text").split("\n");
    const kept = given["unique"] === true ? [...new Set(lines)] : lines;
    const number = (line: string): number => Number.parseFloat(line) || 0;
    const byLetters = (a: string, b: string): number => a.localeCompare(b, "en");
    const byNumbers = (a: string, b: string): number => number(a) - number(b) || byLetters(a, b);
    return kept.sort(given["by"] === "numbers" ? byNumbers : byLetters).join("\n");
  },
};

function textOf(given: Arguments, name: string): string {
  const value = given[name];
  if (typeof value !== "string") throw new Error(`${name} must be a string`);
  return value;
}

export const SAMPLE_TOOLS: readonly SampleTool[] = [CONVERT_UNITS, DAYS_BETWEEN, SORT_LINES, WORD_COUNT];
