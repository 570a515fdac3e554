/** The use-cases as one caller may use them: rights are judged here, for every listener and every RPC. */
import type { RegistryApi, WatchInput, WatchSink } from "../../catalogue/api.js";
import { Fault } from "../../domain/fault.js";
import { type Action, type Principal, may } from "../../domain/identity.js";
import { DEFAULT_NAMESPACE, splitToolId } from "../../domain/ids.js";
import type { ToolsetsApi } from "../../catalogue/toolsets/api.js";
import type { GateApi } from "../../gate/api.js";
import type { Api } from "../api.js";

/**
 * Where reads go that a caller has no grant for: a namespace that nobody can register in, so it is empty for ever. The
 * answer is that of any empty namespace, whether the one asked for exists or not (P9).
 */
export const UNSEEN_NAMESPACE = "unseen.toolcrib";

const NEEDS: Readonly<Record<Action, string>> = { read: "reader", register: "registrant", operate: "operator" };

type Use = Exclude<keyof RegistryApi, "version">;
type Args<N extends Use> = Parameters<RegistryApi[N]>;
type Result<N extends Use> = ReturnType<RegistryApi[N]>;

/** The use-cases of all rooms, before anybody's rights are judged. */
export interface Rooms {
  readonly registry: RegistryApi;
  readonly gate: GateApi;
  readonly toolsets: ToolsetsApi;
}

export class GuardedApi implements Api {
  readonly gate: GateApi;
  readonly toolsets: ToolsetsApi;
  private readonly api: RegistryApi;

  constructor(
    { registry, gate, toolsets }: Rooms,
    private readonly caller: Principal,
  ) {
    this.api = registry;
    this.gate = {
      map: (query) => gate.map(this.seen(query)),
      report: (report) => gate.report({ ...this.seen(report), caller: caller.id }),
      find: (query, deadlineMs) => gate.find({ ...query, caller: caller.id, filter: this.seen(query.filter) }, deadlineMs),
    };
    this.toolsets = {
      create: async (input) => {
        if (!may(caller, "read", nameOf(input.namespace))) throw noToolsets(caller, nameOf(input.namespace));
        return toolsets.create(input, caller);
      },
      get: (name) => toolsets.get(this.seen(name), caller),
      update: (input) => toolsets.update(this.seen(input), caller),
      remove: (name) => toolsets.remove(this.seen(name), caller),
    };
  }

  get version(): number {
    return this.api.version;
  }

  async register(input: Args<"register">[0]): Promise<Awaited<Result<"register">>> {
    const namespace = nameOf(input.namespace);
    if (namespace === UNSEEN_NAMESPACE)
      throw new Fault("FORBIDDEN", `the namespace ${namespace} is reserved: nobody registers there`);
    this.require("register", namespace, input.serverId);
    return this.api.register(input, this.caller);
  }

  async renew(namespace: string, leases: Args<"renew">[1]): Promise<Awaited<Result<"renew">>> {
    this.require("register", nameOf(namespace), undefined, "renew");
    return this.api.renew(namespace, leases, this.caller);
  }

  async deregister(namespace: string, target: Args<"deregister">[1]): Promise<Awaited<Result<"deregister">>> {
    const serverId =
      target.kind === "server"
        ? target.serverId
        : target.kind === "tool"
          ? splitToolId(target.toolId)?.serverId
          : undefined;
    this.require("register", nameOf(namespace), serverId, "deregister");
    return this.api.deregister(namespace, target, this.caller);
  }

  async isolate(input: Args<"isolate">[0]): Promise<Awaited<Result<"isolate">>> {
    this.require("operate", nameOf(input.namespace), input.serverId);
    return this.api.isolate(input, this.caller);
  }

  async resume(name: Args<"resume">[0]): Promise<Awaited<Result<"resume">>> {
    this.require("operate", nameOf(name.namespace), name.serverId);
    return this.api.resume(name, this.caller);
  }

  async refresh(name: Args<"refresh">[0]): Promise<Awaited<Result<"refresh">>> {
    this.require("operate", nameOf(name.namespace), name.serverId);
    return this.api.refresh(name, this.caller);
  }

  async approveOverlays(input: Args<"approveOverlays">[0]): Promise<Awaited<Result<"approveOverlays">>> {
    this.require("operate", nameOf(input.namespace), input.serverId, "overlay labels of");
    return this.api.approveOverlays(input, this.caller);
  }

  async withdrawOverlays(input: Args<"withdrawOverlays">[0]): Promise<Awaited<Result<"withdrawOverlays">>> {
    this.require("operate", nameOf(input.namespace), input.serverId, "overlay labels of");
    return this.api.withdrawOverlays(input, this.caller);
  }

  async quarantineTool(input: Args<"quarantineTool">[0]): Promise<Awaited<Result<"quarantineTool">>> {
    this.require("operate", nameOf(input.namespace), splitToolId(input.toolId)?.serverId, "quarantine tools of");
    return this.api.quarantineTool(input, this.caller);
  }

  async approveTool(input: Args<"approveTool">[0]): Promise<Awaited<Result<"approveTool">>> {
    this.require("operate", nameOf(input.namespace), splitToolId(input.toolId)?.serverId, "approve tools of");
    return this.api.approveTool(input, this.caller);
  }

  async overlays(query: Args<"overlays">[0]): Promise<Awaited<Result<"overlays">>> {
    this.require("operate", nameOf(query.namespace), undefined, "see the overlays of");
    return this.api.overlays(query);
  }

  stubs(query: Args<"stubs">[0]): Result<"stubs"> {
    return this.api.stubs({ ...query, filter: this.seen(query.filter) });
  }

  servers(query: Args<"servers">[0]): Result<"servers"> {
    return this.api.servers(this.seen(query));
  }

  server(query: Args<"server">[0]): Result<"server"> {
    return this.api.server(this.seen(query));
  }

  lint(query: Args<"lint">[0]): Result<"lint"> {
    return this.api.lint(this.seen({ ...query, namespace: nameOf(query.namespace) }));
  }

  health(namespace: string, serverId: string): Result<"health"> {
    return this.api.health(namespace, serverId);
  }

  notices(namespace: string): Result<"notices"> {
    return this.api.notices(this.seen({ namespace: nameOf(namespace) }).namespace);
  }

  schema(query: Args<"schema">[0]): Result<"schema"> {
    return this.api.schema(this.seen(query));
  }

  schemas(query: Args<"schemas">[0]): Result<"schemas"> {
    return this.api.schemas(this.seen(query));
  }

  watch(input: WatchInput, sink: WatchSink): Result<"watch"> {
    return this.api.watch({ ...input, filter: this.seen(input.filter) }, sink, this.caller);
  }

  private seen<Q extends { readonly namespace: string }>(query: Q): Q {
    return may(this.caller, "read", nameOf(query.namespace)) ? query : { ...query, namespace: UNSEEN_NAMESPACE };
  }

  /** `verb` names for the caller what needs this right. */
  private require(action: Action, namespace: string, serverId?: string, verb: string = action): void {
    if (!may(this.caller, action, namespace, serverId)) throw forbidden(this.caller, action, verb, namespace, serverId);
  }
}

function nameOf(namespace: string): string {
  return namespace === "" ? DEFAULT_NAMESPACE : namespace;
}

function noToolsets(caller: Principal, namespace: string): Fault {
  return new Fault("FORBIDDEN", `${caller.id} may not create toolsets in namespace ${namespace}: it takes a grant there`);
}

function forbidden(
  caller: Principal,
  action: Action,
  verb: string,
  namespace: string,
  serverId: string | undefined,
): Fault {
  const what = serverId === undefined ? "servers" : `server ${serverId}`;
  const message = `${caller.id} may not ${verb} ${what} in namespace ${namespace}: it takes a grant of the role ${NEEDS[action]} there`;
  return new Fault("FORBIDDEN", serverId === undefined ? message : `${message} that covers this server_id`);
}
