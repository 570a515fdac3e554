/**
 * The gateway's own tools as clients list them. Their texts are constants, so a list of them is the same bytes every time; they are short,
 * because every prompt pays for them.
 */

const INTENT = { type: "string", description: "What you want to do, in any language." };
const CATEGORY = { type: "string", description: "Only tools of this category; all of them without an intent." };
const LIMIT = { type: "integer", description: "1 to 20 tools; 5 if unsaid." };
/** Where it is not known which facts matter, any. */
const state = (facts: string): object => ({
  type: "array",
  items: { type: "string" },
  description: `Facts that hold now, such as ${facts}: some tools wait for them.`,
});
/** Facts that a description names. */
const FACTS_SHOWN = 12;
/** Where the gateway has a model to ask. */
const BY = {
  type: "string",
  enum: ["model", "search"],
  description: "Who chooses: model reads all labels with your intent in mind and takes seconds, search goes by words and is instant. model if unsaid.",
};
const TOOLSET = { type: "string", description: "The toolset that find_tools named." };

/** What both kinds of find_tools take. `facts` as a sentence says them; empty where none matters. */
function wanted(facts: string, modelChooses: boolean): object {
  return { intent: INTENT, category: CATEGORY, limit: LIMIT, ...(facts !== "" && { state: state(facts) }), ...(modelChooses && { by: BY }) };
}

/** For sessions whose list of tools changes; `map` is the module map, `facts` are those that tools or rules wait for. */
export function findToolsForSession(map: string, facts: readonly string[], modelChooses: boolean): object {
  const shown = facts.length > FACTS_SHOWN ? [...facts.slice(0, FACTS_SHOWN), "…"] : facts;
  return {
    name: "find_tools",
    title: "Find tools",
    description:
      "Loads the tools for what you want to do, or of a category, into your list of tools, in place of those loaded before. " +
      `Call it again for anything else.${map === "" ? "" : `\n\nCategories:\n${map}`}`,
    inputSchema: {
      type: "object",
      properties: {
        ...wanted(shown.join(", "), modelChooses),
        keep: { type: "boolean", description: "Keep those loaded before." },
      },
      additionalProperties: false,
    },
    annotations: { readOnlyHint: true, openWorldHint: false },
  };
}

/** The whole list of the stable mode, as JSON; the same bytes every time. */
export function stableList(modelChooses: boolean): string {
  return JSON.stringify([findToolsForToolset(modelChooses), ...OVER_TOOLSETS]);
}

function findToolsForToolset(modelChooses: boolean): object {
  return {
    name: "find_tools",
    title: "Find tools",
    description:
      "Finds the tools that fit what you want to do, and puts them into a toolset. Answers their ids, what they do, and the toolset's name. " +
      "Without arguments it answers the categories of all tools. Next: describe_tools for their parameters, then call_tool.",
    inputSchema: {
      type: "object",
      properties: {
        ...wanted("logged_in or branch=main", modelChooses),
        toolset: { type: "string", description: "A toolset that find_tools named before, to add to; without it a new one is made." },
      },
      additionalProperties: false,
    },
    annotations: { readOnlyHint: true, openWorldHint: false },
  };
}

const OVER_TOOLSETS: readonly object[] = [
  {
    name: "describe_tools",
    title: "Describe tools",
    description: "Answers the full definitions of tools of a toolset: description and JSON Schema of their arguments. Needed before call_tool.",
    inputSchema: {
      type: "object",
      properties: {
        toolset: TOOLSET,
        tools: { type: "array", items: { type: "string" }, minItems: 1, maxItems: 20, description: "Ids of tools, as find_tools answered them." },
      },
      required: ["toolset", "tools"],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: true, openWorldHint: false },
  },
  {
    name: "call_tool",
    title: "Call a tool",
    description: "Calls a tool of a toolset and answers what it answered.",
    inputSchema: {
      type: "object",
      properties: {
        toolset: TOOLSET,
        tool: { type: "string", description: "The tool's id, as find_tools answered it." },
        arguments: { type: "object", description: "The tool's arguments, as describe_tools described them." },
      },
      required: ["toolset", "tool", "arguments"],
      additionalProperties: false,
    },
    // It may be any tool, so it may do anything.
    annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: true },
  },
];
