/** What the registry knows, as far as the model is shown it: the module map, and labels. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { LIMITS } from "../../domain/limits.js";
import { Availability, type Stub, type StubFilterSchema } from "../../gen/toolcrib/v1/stub_pb.js";
import type { CallOptions, RegistryConnection } from "../connection.js";
import { RegistryError } from "../registry-error.js";

/** What is asked of the registry; a RegistryConnection, or whatever chooses one. */
export type SelectorRegistry = Pick<RegistryConnection, "findTools" | "getModuleMap" | "getStubs">;

export type StubFilter = MessageInitShape<typeof StubFilterSchema>;

export interface Shelves {
  readonly registry: SelectorRegistry;
  readonly namespace: string;
  /** Only these; its category is not minded here. */
  readonly filter: StubFilter;
  readonly call: CallOptions;
}

export interface ShownMap {
  readonly text: string;
  /** Names that may be answered. */
  readonly names: ReadonlySet<string>;
  readonly tools: number;
}

/** Servers whose modules are shown beside the map, those with the most tools first, and from how many tools on. */
const LARGE_SERVERS = 10;
const LARGE = 40;
/** Modules nest this deep at most; it only ends a walk that would not. */
const DEPTH = 4;

export async function toolCount({ registry, namespace, call }: Shelves): Promise<number> {
  return (await registry.getModuleMap({ namespace, tokenBudget: LIMITS.mapTokensLeast }, call)).toolCount;
}

/** The map in so many estimated tokens; of large servers also their modules. */
export async function mapFor(shelves: Shelves, tokens: number): Promise<ShownMap> {
  const { registry, namespace, call } = shelves;
  const ask = (module: string, most: number) =>
    registry.getModuleMap({ namespace, module, tokenBudget: Math.max(LIMITS.mapTokensLeast, Math.min(LIMITS.mapTokens, Math.floor(most))) }, call);
  const first = await ask("", tokens / 2);
  const large = first.modules
    .filter((module) => module.toolCount >= LARGE)
    .sort((a, b) => b.toolCount - a.toolCount)
    .slice(0, LARGE_SERVERS);
  const share = (tokens - first.estimatedTokens) / Math.max(1, large.length);
  const parts = await Promise.all(large.map(({ name }) => ask(name, share)));
  const all = [first, ...parts];
  return {
    text: all.map(({ text }) => text).join("\n"),
    names: new Set(all.flatMap(({ modules }) => modules.map(({ name }) => name))),
    tools: first.toolCount,
  };
}

/** Labels of available tools, until `enough` says so after a page. */
export async function* stubsOf({ registry, namespace, filter, call }: Shelves, servers?: readonly string[]): AsyncGenerator<readonly Stub[]> {
  const { category: _, $typeName: __, ...rest } = { $typeName: undefined, ...filter };
  const { serverIds = [] } = rest;
  const both = servers?.filter((id) => serverIds.length === 0 || serverIds.includes(id)) ?? serverIds;
  if (servers && both.length === 0) return;
  const asked = { ...rest, availability: Availability.AVAILABLE, serverIds: [...both] };
  let pageToken = "";
  do {
    const page = await registry.getStubs({ namespace, filter: asked, pageToken, pageSize: LIMITS.pageStubs }, call);
    yield page.stubs;
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
}

/** Labels of one module: a whole server's, or those of the tools that the registry counts to it. */
export async function stubsOfModule(shelves: Shelves, module: string, mostStubs: number): Promise<readonly Stub[]> {
  if (!module.includes("/")) {
    const whole = await gather(stubsOf(shelves, [module]), mostStubs, () => true);
    if (whole.length > 0) return whole;
  }
  const ids = new Set(await toolsIn(shelves, module, DEPTH));
  const servers = [...new Set([...ids].map((id) => id.slice(0, id.indexOf("/"))))].slice(0, LIMITS.filterServers);
  return servers.length === 0 ? [] : gather(stubsOf(shelves, servers), mostStubs, ({ toolId }) => ids.has(toolId));
}

export async function gather(pages: AsyncIterable<readonly Stub[]>, most: number, wanted: (stub: Stub) => boolean): Promise<readonly Stub[]> {
  const found: Stub[] = [];
  for await (const page of pages) {
    found.push(...page.filter(wanted));
    if (found.length >= most) break;
  }
  return found.slice(0, most);
}

/** A module's parts are tools, or modules again; of a tool's name the map says nothing more. */
async function toolsIn(shelves: Shelves, module: string, depth: number): Promise<readonly string[]> {
  const { registry, namespace, call } = shelves;
  const answer = await registry.getModuleMap({ namespace, module, tokenBudget: LIMITS.mapTokens }, call).catch((error: unknown) => {
    // A name of a tool is no module: it stands for itself.
    if (error instanceof RegistryError && error.reason === "NOT_FOUND") return undefined;
    throw error;
  });
  if (!answer) return [module];
  const names = answer.modules.map(({ name }) => name).filter((name) => name !== module);
  const single = answer.modules.every(({ toolCount: tools }) => tools === 1);
  if (single || depth === 0) return answer.modules.map(({ name }) => name);
  return (await Promise.all(names.map((name) => toolsIn(shelves, name, depth - 1)))).flat();
}
