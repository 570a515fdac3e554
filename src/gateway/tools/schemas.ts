/** The gateway's own tools as clients list them. Their texts are constants, so a list of them is the same bytes every time. */

const INTENT = { type: "string", description: "What you want to do, in your own words and any language." };
const CATEGORY = { type: "string", description: "A category: only its tools are considered, or without an intent all of them." };
const LIMIT = { type: "integer", minimum: 1, maximum: 20, description: "At most this many tools; 8 if unsaid." };
const TOOLSET = { type: "string", description: "The toolset that find_tools named." };

/** For sessions whose list of tools changes; `map` is the module map. */
export function findToolsForSession(map: string): object {
  return {
    name: "find_tools",
    title: "Find tools",
    description:
      "Loads the tools that you need into your list of tools, and takes out those that were loaded before. Say what you want to do, or name " +
      `a category. Call it again whenever you turn to something else.${map === "" ? "" : `\n\nCategories:\n${map}`}`,
    inputSchema: {
      type: "object",
      properties: {
        intent: INTENT,
        category: CATEGORY,
        limit: LIMIT,
        keep: { type: "boolean", description: "Keep the tools that were loaded before." },
      },
      additionalProperties: false,
    },
    annotations: { readOnlyHint: true, openWorldHint: false },
  };
}

/** The whole list of the stable mode. */
export const STABLE_TOOLS: readonly object[] = [
  {
    name: "find_tools",
    title: "Find tools",
    description:
      "Finds the tools that fit what you want to do, and puts them into a toolset. Answers their ids, what they do, and the toolset's name. " +
      "Without arguments it answers the categories of all tools. Next: describe_tools for their parameters, then call_tool.",
    inputSchema: {
      type: "object",
      properties: {
        intent: INTENT,
        category: CATEGORY,
        limit: LIMIT,
        toolset: { type: "string", description: "A toolset that find_tools named before, to add to; without it a new one is made." },
      },
      additionalProperties: false,
    },
    annotations: { readOnlyHint: true, openWorldHint: false },
  },
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

export const STABLE_LIST = JSON.stringify(STABLE_TOOLS);
