/** A gate over a catalogue that a test keeps by hand. */
import { everything } from "../../src/domain/filter.js";
import { splitToolId } from "../../src/domain/ids.js";
import type { Availability, Tool } from "../../src/domain/server.js";
import { EMPTY_STUB, type StubFields } from "../../src/domain/stub.js";
import type { FindQuery } from "../../src/gate/api.js";
import { Gate, type GateObserver } from "../../src/gate/gate.js";
import type { Outcomes } from "../../src/gate/outcomes/outcomes.js";
import type { ListedTool, LoadSchemas } from "../../src/gate/ports.js";
import { NO_RULES, type Rules } from "../../src/gate/stages.js";
import { stubCodec } from "../../src/store/codec/stub.js";

export interface Shelf {
  readonly gate: Gate;
  /** By tool_id. */
  readonly tools: Map<string, ListedTool>;
  /** By digest. */
  readonly definitions: Map<string, Uint8Array>;
  readonly errors: unknown[];
  readonly told: string[];
  stale: boolean;
  /** Puts or changes a tool and tells the gate. */
  put(id: string, label?: Partial<StubFields>, availability?: Availability): void;
  remove(id: string): void;
}

const POSITION = { partition: 0, revision: 7, chain: "abc" };

/** `past`: what calls taught, and the time at which it is asked; nothing is remembered without it. */
export function shelf(
  load: LoadSchemas = async () => [],
  rules: Rules = NO_RULES,
  past?: { readonly outcomes: Outcomes; now(): number },
): Shelf {
  const tools = new Map<string, ListedTool>();
  const definitions = new Map<string, Uint8Array>();
  const errors: unknown[] = [];
  const told: string[] = [];
  const servers = () => {
    const byServer = new Map<string, Tool[]>();
    for (const { serverId, tool } of tools.values()) {
      const list = byServer.get(serverId);
      if (list) list.push(tool);
      else byServer.set(serverId, [tool]);
    }
    return {
      server: (serverId: string) => byServer.get(serverId),
      servers: () => [...byServer].map(([serverId, names]) => ({ serverId, names })),
    };
  };
  const observer: GateObserver = { found: (fit) => void told.push(fit), withheld: (cause) => void told.push(cause) };
  const gate = new Gate({
    catalogue: {
      at: async () => ({ position: POSITION, stale: self.stale, tool: (id) => tools.get(id), ...servers() }),
      current: (_namespace, id) => tools.get(id),
      all: () => tools.values(),
      definitions: async (_namespace, digests) => digests.map((digest) => definitions.get(digest)),
    },
    load,
    outcomes: past?.outcomes,
    rules: () => rules,
    decode: (stub) => stubCodec.decode(stub),
    clock: {
      now: () => past?.now() ?? Date.now(),
      monotonic: () => performance.now(),
      pause: () => new Promise((resolve) => setImmediate(resolve)),
      sleep: (_ms, signal) => new Promise((resolve) => signal?.addEventListener("abort", () => resolve())),
    },
    observer,
    onError: (error) => void errors.push(error),
  });
  const names = (serverId: string) =>
    [...tools.values()].filter((t) => t.serverId === serverId).map((t) => t.tool.name);
  const changed = (id: string, service: string | undefined) => {
    const { serverId, toolName } = splitToolId(id) as { serverId: string; toolName: string };
    gate.changed("default", serverId, service, [toolName], () => names(serverId));
  };
  const self: Shelf = {
    gate,
    tools,
    definitions,
    errors,
    told,
    stale: false,
    put(id, label = {}, availability = "available") {
      const { serverId, toolName: name } = splitToolId(id) as { serverId: string; toolName: string };
      const tool = stubCodec.encode({ ...EMPTY_STUB, serverId, name, ...label }, false);
      const facts = { tool, serverId, service: serverId, availability };
      tools.set(id, { ...facts, get siblings() { return servers().server(serverId) ?? []; } });
      changed(id, serverId);
    },
    remove(id) {
      const serverId = splitToolId(id)?.serverId ?? "";
      tools.delete(id);
      changed(id, names(serverId).length > 0 ? serverId : undefined);
    },
  };
  return self;
}

export function asking(intent: string, more: Partial<FindQuery> = {}): FindQuery {
  return {
    intent,
    history: [],
    recent: [],
    state: [],
    scopes: [],
    filter: everything("default"),
    category: "",
    topK: 0,
    tokenBudget: 0,
    schemas: "none",
    minRevision: "",
    ...more,
  };
}
