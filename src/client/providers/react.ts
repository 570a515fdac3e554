import type { CallProblem, CallReading } from "./calls.js";
import { notACall } from "./calls.js";
import type { ToolInput } from "./read-tool.js";
import type { ToolResult } from "./results.js";
import { isFailure, textOf } from "./results.js";
import type { ExportOptions } from "./toolbox.js";
import { Toolbox } from "./toolbox.js";

const HOW_TO_CALL = `To use a tool, write these two lines and stop:
Action: the tool's name
Action Input: its arguments as one JSON object
The answer follows as "Observation:".`;

/** Tools as plain text, for models without tool calls: the form of ReAct prompts. */
export class ReactTools extends Toolbox {
  /** For the system prompt: how to call, and every tool. */
  readonly prompt: string;

  constructor(tools: readonly ToolInput[], options: ExportOptions = {}) {
    const most = Number.POSITIVE_INFINITY;
    super(tools, { form: { kind: "full", strict: "off" }, most, descriptionLength: most }, options);
    const blocks = this.exported.map(({ name, description, schema }) =>
      [`Tool: ${name}`, ...(description === "" ? [] : [description]), `Arguments: ${JSON.stringify(schema)}`].join("\n"),
    );
    this.prompt = [HOW_TO_CALL, ...blocks].join("\n\n");
  }

  /** The last call in a model's text; a model that writes an `Observation:` itself has made it up, and that is ignored. */
  readCall(text: unknown): CallReading {
    if (typeof text !== "string") return notACall("it is no text");
    const action = lastAction(text);
    if (!action) return notACall('there is no line "Action: name"');
    return this.read({ name: action.name, callId: "", input: inputOf(action.rest) });
  }

  /** The text that answers a call. */
  result(_call: unknown, result: ToolResult): string {
    return `Observation: ${isFailure(result) ? "Error: " : ""}${textOf(result)}`;
  }

  /** The text that tells the model what was wrong with its call. */
  problem(problem: CallProblem): string {
    return `Observation: Error: ${problem.message}`;
  }
}

interface Action {
  readonly name: string;
  readonly rest: string;
}

function lastAction(text: string): Action | undefined {
  const lines = text.split("\n");
  const said = lines.findIndex((line) => line.trimStart().startsWith("Observation:"));
  const own = said < 0 ? lines : lines.slice(0, said);
  const at = own.findLastIndex((line) => line.trimStart().startsWith("Action:"));
  if (at < 0) return undefined;
  const name = (own[at] ?? "").trim().slice("Action:".length).trim();
  return { name: unquoted(name), rest: own.slice(at + 1).join("\n") };
}

function unquoted(name: string): string {
  return name.length > 1 && /^[`"'*]/.test(name) && name.at(-1) === name[0] ? name.slice(1, -1) : name;
}

/** The JSON behind `Action Input:`, without a fence around it or words behind it. */
function inputOf(rest: string): string {
  const mark = "Action Input:";
  const at = rest.indexOf(mark);
  const text = at < 0 ? "" : rest.slice(at + mark.length).trim();
  const start = text.indexOf("{");
  return start < 0 ? text : balanced(text, start);
}

/** From an opening brace to the one that closes it; to the end where none does. */
function balanced(text: string, start: number): string {
  let depth = 0;
  let quoted = false;
  for (let i = start; i < text.length; i++) {
    const char = text[i];
    if (quoted) {
      if (char === "\\") i++;
      else if (char === '"') quoted = false;
    } else if (char === '"') quoted = true;
    else if (char === "{" || char === "[") depth++;
    else if ((char === "}" || char === "]") && --depth === 0) return text.slice(start, i + 1);
  }
  return text.slice(start);
}
