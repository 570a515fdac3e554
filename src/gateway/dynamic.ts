/** The mode for sessions: their list holds `find_tools` and what it loaded, and changes with it. */
import type { Calling, CallParams } from "./calling.js";
import type { Catalogue } from "./catalogue.js";
import { type Definitions, isDefinition } from "./definitions.js";
import type { Face } from "./face.js";
import type { ModuleMap } from "./module-map.js";
import { exposedName, toolMeant } from "./names.js";
import { type Era, presentedDefinition } from "./presented.js";
import type { Seat } from "./seat.js";
import { loadedNames, readFind } from "./tools/arguments.js";
import type { Finding } from "./tools/finding.js";
import { foundText } from "./tools/found.js";
import { findToolsForSession } from "./tools/schemas.js";
import { visibleTools } from "./visible.js";
import { FACTS, type Line, type Result, type Toolset, toolError, toolText } from "./words.js";

/** Tools that a session has loaded at once; with `keep` the oldest make room. */
const LOADED = 64;

export interface DynamicParts {
  readonly catalogue: Catalogue;
  readonly definitions: Definitions;
  readonly map: ModuleMap;
  readonly finding: Finding;
  readonly calling: Calling;
  readonly era: Era;
}

export class DynamicFace implements Face {
  constructor(private readonly parts: DynamicParts) {}

  async list(seat: Seat): Promise<Result> {
    const { catalogue, definitions, map, era, finding } = this.parts;
    const { toolset } = await seat.read();
    const modules = await map.read();
    const visible = visibleTools(toolset, map.always, catalogue);
    const loaded = await definitions.load(seat.caller, visible);
    const texts = visible.flatMap((id) => {
      const definition = loaded.get(id);
      const text = isDefinition(definition) && presentedDefinition(definition.text, exposedName(id), era);
      return text ? [text] : [];
    });
    const own = JSON.stringify(findToolsForSession(modules, map.facts, finding.modelChooses));
    return { kind: "text", text: `{"tools":[${[own, ...texts].join(",")}]}` };
  }

  async call(seat: Seat, name: string, params: CallParams, line: Line): Promise<Result> {
    if (name === "find_tools") return this.#find(seat, params.args, line);
    const { toolset } = await seat.read();
    const { map, calling, catalogue } = this.parts;
    const meant = toolMeant(name, new Set([...map.always, ...toolset.toolIds]));
    if (meant && "toolId" in meant) return calling.call(seat, toolset, meant.toolId, params, line);
    const names = loadedNames(toolset, exposedName);
    if (meant) return toolError(`Several loaded tools are named ${name}: say which, ${meant.several.map(exposedName).join(" or ")}.`);
    const elsewhere = toolMeant(name, catalogue.tools().map((t) => t.toolId));
    if (!elsewhere) return toolError(`There is no tool ${name} here. Say what you want to do to find_tools, and it loads the tools for it. ${names}`);
    return toolError(`The tool ${name} is not loaded now. Call find_tools with {"intent": "${name}"} to load it. ${names}`);
  }

  async #find(seat: Seat, given: unknown, line: Line): Promise<Result> {
    const read = readFind(given);
    if (!read.ok) return toolError(read.text);
    const { catalogue, finding, map } = this.parts;
    const { toolset } = await seat.read();
    const found = await finding.find(seat.caller, read.value, toolset, line.signal);
    if (found.kind === "nothing-asked") return toolText(`Say what you want to do (intent), or name a category:\n${await map.whole()}`);
    const text = foundText(found, catalogue, exposedName, "names");
    if (found.kind === "no-category") return toolError(text);
    if (found.kind === "large" || found.toolIds.length === 0) return toolText(text);
    const { intent, keep } = read.value;
    const changed = await seat.change((now) => ({
      toolIds: keep ? [...found.toolIds, ...now.toolIds.filter((id) => !found.toolIds.includes(id))].slice(0, LOADED) : found.toolIds,
      setFacts: { [FACTS.intent]: intent },
    }));
    if (sameTools(toolset, changed)) return toolText(`These tools are loaded already:\n${text}`);
    line.notify("notifications/tools/list_changed", {});
    return toolText(`Loaded into your list of tools:\n${text}${this.#note()}`);
  }

  #note(): string {
    const { stale } = this.parts.catalogue;
    return stale === "" ? "" : `\n${stale}`;
  }
}

function sameTools(a: Toolset, b: Toolset): boolean {
  return a.toolIds.length === b.toolIds.length && a.toolIds.every((id, i) => id === b.toolIds[i]);
}
