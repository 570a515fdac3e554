/** The mode whose list never changes: `find_tools` → `describe_tools` → `call_tool`, over a toolset that is named each time. */
import { splitToolId } from "../domain/ids.js";
import type { Calling, CallParams } from "./calling.js";
import type { Catalogue } from "./catalogue.js";
import { type Definitions, isDefinition } from "./definitions.js";
import type { Face } from "./face.js";
import type { ModuleMap } from "./module-map.js";
import { toolMeant } from "./names.js";
import type { RegistryLink } from "./registry.js";
import type { Seat } from "./seat.js";
import { loadedNames, readCall, readDescribe, readFind } from "./tools/arguments.js";
import type { Finding } from "./tools/finding.js";
import { foundText } from "./tools/found.js";
import { stableList } from "./tools/schemas.js";
import type { Seen, Toolsets } from "./toolsets.js";
import { FACTS, type Line, type Result, type Toolset, toolError, toolText } from "./words.js";

/** Tools of one toolset; the oldest make room. */
const HELD = 256;

export interface StableParts {
  readonly catalogue: Catalogue;
  readonly definitions: Definitions;
  readonly map: ModuleMap;
  readonly finding: Finding;
  readonly calling: Calling;
  readonly toolsets: Toolsets;
  readonly registry: Pick<RegistryLink, "shows">;
}

export class StableFace implements Face {
  readonly #list: string;

  constructor(private readonly parts: StableParts) {
    this.#list = stableList(parts.finding.modelChooses);
  }

  async list(): Promise<Result> {
    return { kind: "text", text: `{"tools":${this.#list}}` };
  }

  async call(seat: Seat, name: string, params: CallParams, line: Line): Promise<Result> {
    if (name === "find_tools") return this.#find(seat, params.args, line);
    if (name === "describe_tools") return this.#describe(seat, params.args);
    if (name === "call_tool") return this.#call(seat, params, line);
    const tool = (await this.#shown(seat, name)) ?? "server/tool";
    return toolError(`${name} is not called by itself: find it with find_tools, then call call_tool with {"toolset": "…", "tool": "${tool}", "arguments": {…}}.`);
  }

  /** The tool of that name, for a caller who may know of it: the catalogue is the gateway's, not the caller's. */
  async #shown({ caller }: Seat, name: string): Promise<string | undefined> {
    const meant = toolMeant(name, this.parts.catalogue.tools().map((t) => t.toolId));
    if (!meant || !("toolId" in meant)) return undefined;
    const serverId = splitToolId(meant.toolId)?.serverId;
    const mayKnow = caller.token === undefined || (serverId !== undefined && (await this.parts.registry.shows(caller, serverId)));
    return mayKnow ? meant.toolId : undefined;
  }

  async #find(seat: Seat, given: unknown, { signal }: Line): Promise<Result> {
    const read = readFind(given);
    if (!read.ok) return toolError(read.text);
    const { toolsets, finding, catalogue, map } = this.parts;
    const { intent, toolset: handle } = read.value;
    const seen = handle === "" ? undefined : await toolsets.read(seat.caller, handle);
    if (handle !== "" && !seen) return unknownToolset(handle);
    const found = await finding.find(seat.caller, read.value, seen?.toolset, signal);
    if (found.kind === "no-category") return toolError(foundText(found, catalogue, asIs, "labels"));
    if (found.kind === "large" || (found.kind !== "nothing-asked" && found.toolIds.length === 0)) return toolText(foundText(found, catalogue, asIs, "labels"));
    const facts = { [FACTS.intent]: intent };
    const add = found.kind === "nothing-asked" ? [] : found.toolIds;
    const toolset = seen
      ? await toolsets.change(seat.caller, handle, (now) => ({ toolIds: added(now, add), setFacts: facts }))
      : await toolsets.create(seat.caller, facts, [...new Set([...add, ...map.always])].slice(0, HELD));
    if (!toolset) return unknownToolset(handle);
    if (found.kind === "nothing-asked") return toolText(`toolset: ${toolset.handle}\nSay what you want to do (intent), or name a category:\n${await map.whole()}`);
    return toolText(`toolset: ${toolset.handle}\n${foundText(found, catalogue, asIs, "labels")}${note(catalogue.stale)}`);
  }

  async #describe(seat: Seat, given: unknown): Promise<Result> {
    const read = readDescribe(given);
    if (!read.ok) return toolError(read.text);
    const { tools, toolset: handle } = read.value;
    const seen = await this.parts.toolsets.read(seat.caller, handle);
    if (!seen) return unknownToolset(handle);
    const meant = tools.map((name) => ({ name, is: toolMeant(name, this.#mayUse(seen)) }));
    const loaded = await this.parts.definitions.load(seat.caller, meant.flatMap(({ is }) => (is && "toolId" in is ? [is.toolId] : [])));
    const parts = meant.map(({ name, is }) => {
      if (!is) return `${name}: it is not in this toolset. find_tools with {"intent": …, "toolset": "${handle}"} adds it. ${loadedNames(seen.toolset, asIs)}`;
      if ("several" in is) return `${name}: several tools of this toolset have that name: ${is.several.join(", ")}.`;
      const definition = loaded.get(is.toolId);
      if (this.parts.catalogue.known && this.parts.catalogue.standing(is.toolId) === "gone") return `${is.toolId}: it is not registered any more. Look for another with find_tools.`;
      if (isDefinition(definition)) return `${is.toolId}:\n${definition.text}${definition.freshness === "stale" ? "\n(stale: the registry is away)" : ""}`;
      const instead = definition && definition.substitutes.length > 0 ? ` Instead: ${definition.substitutes.join(", ")}.` : "";
      return `${is.toolId}: its definition is not here now (${definition?.why ?? "unknown"}). Try again in a moment.${instead}`;
    });
    const none = meant.every(({ is }) => !is || "several" in is);
    return none ? toolError(parts.join("\n")) : toolText(parts.join("\n"));
  }

  async #call(seat: Seat, params: CallParams, line: Line): Promise<Result> {
    const read = readCall(params.args);
    if (!read.ok) return toolError(read.text);
    const { toolset: handle, tool, args } = read.value;
    const seen = await this.parts.toolsets.read(seat.caller, handle);
    if (!seen) return unknownToolset(handle);
    const meant = toolMeant(tool, this.#mayUse(seen));
    if (!meant) {
      return toolError(
        `${tool} is not in this toolset, so nothing was called. find_tools with {"intent": …, "toolset": "${handle}"} adds it. ${loadedNames(seen.toolset, asIs)}`,
      );
    }
    if ("several" in meant) return toolError(`Several tools of this toolset are named ${tool}: say which, ${meant.several.join(" or ")}.`);
    return this.parts.calling.call(seat, seen.toolset, meant.toolId, { ...params, args }, line);
  }

  #mayUse({ toolset }: Seen): Set<string> {
    return new Set([...toolset.toolIds, ...this.parts.map.always]);
  }
}

const asIs = (toolId: string): string => toolId;

function added({ toolIds }: Toolset, found: readonly string[]): string[] {
  return [...found, ...toolIds.filter((id) => !found.includes(id))].slice(0, HELD);
}

/** One text for all: nobody learns of another's toolset. */
function unknownToolset(handle: string): Result {
  const shown = handle.length > 64 ? `${handle.slice(0, 64)}…` : handle;
  return toolError(`There is no toolset ${JSON.stringify(shown)} here: it was not used for too long, or it is another's. Call find_tools without a toolset for a new one.`);
}

function note(stale: string): string {
  return stale === "" ? "" : `\n${stale}`;
}
