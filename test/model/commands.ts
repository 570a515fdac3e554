/** What may happen to a registry. Each command says what must come of it, and is told in a few words. */
import fc, { type AsyncCommand } from "fast-check";
import { expect } from "vitest";
import { parseRevision } from "../../src/domain/revision.js";
import type { Held } from "../validators/client.js";
import { definitions, type Instance, type Model, type Server, type ToolSet } from "./model.js";
import { NAMESPACES, Real, reasonOf } from "./real.js";

export type Step = AsyncCommand<Model, Real>;

export const SERVERS = ["s1", "s2", "s1.x", "standing-1"] as const;

const MORTAL_MS = 60_000;
const LASTING_MS = 3_600_000;

interface Named {
  readonly replica: number;
  readonly namespace: string;
  readonly serverId: string;
}

export interface Registering extends Named {
  readonly instance: string;
  readonly set: ToolSet;
  readonly mortal: boolean;
}

const where = ({ replica, namespace, serverId }: Named): string => `${"ab"[replica]}: ${namespace || "default"}:${serverId}`;
const shownSet = (set: ToolSet): string => Object.entries(set).map(([name, version]) => `${name}@${version}`).join(" ");

let requests = 0;

async function register(model: Model, real: Real, r: Registering, more: { etag?: string; requestId?: string } = {}): Promise<Held> {
  const requestId = more.requestId ?? `request-${++requests}`;
  const ttlMs = ttlOf(r);
  const held = await real.client(r.replica).register(r.serverId, definitions(r.serverId, r.set), {
    namespace: r.namespace,
    instanceId: r.instance,
    ttlMs,
    requestId,
    ...(more.etag !== undefined && { etag: more.etag }),
  });
  note(model, real, r, { id: r.instance, set: r.set, held, ttlMs, requestId });
  return held;
}

/** Standing servers are other servers than leased ones. */
function ttlOf({ serverId, mortal }: Registering): number {
  return serverId.startsWith("standing") ? 0 : mortal ? MORTAL_MS : LASTING_MS;
}

function note(model: Model, real: Real, { namespace, serverId }: Named, instance: Instance): void {
  model.registered(namespace, serverId, instance);
  model.revision = instance.held.revision;
  real.believe(model, namespace, serverId);
}

export class Register implements Step {
  constructor(private readonly r: Registering) {}
  check = (): boolean => true;
  async run(model: Model, real: Real): Promise<void> {
    await register(model, real, this.r);
    await real.check(model, this.r.replica + 1);
  }
  toString = (): string => `Register ${where(this.r)} by ${this.r.instance}${this.r.mortal ? ", mortal" : ""} [${shownSet(this.r.set)}]`;
}

/** With the etag that the server has, or with one that it had. */
export class RegisterGuarded implements Step {
  constructor(
    private readonly r: Registering,
    private readonly current: boolean,
  ) {}
  check = (model: Readonly<Model>): boolean => model.server(this.r.namespace, this.r.serverId) !== undefined;
  async run(model: Model, real: Real): Promise<void> {
    const { namespace, serverId, replica } = this.r;
    const { server } = await real.client(replica).call("getServer", { namespace, serverId, minRevision: model.revision });
    const etag = server?.etag ?? "";
    if (this.current) await register(model, real, this.r, { etag });
    else expect(await reasonOf(register(model, real, this.r, { etag: `${etag}0` }))).toBe("ETAG_MISMATCH");
    await real.check(model, replica + 1);
  }
  toString = (): string => `RegisterGuarded ${where(this.r)} by ${this.r.instance} [${shownSet(this.r.set)}] with ${this.current ? "its" : "an old"} etag`;
}

/** Sends an instance's last Register once more, as after a lost answer. */
export class Repeat implements Step {
  constructor(private readonly r: Registering) {}
  #instance(model: Readonly<Model>): Instance | undefined {
    return model.server(this.r.namespace, this.r.serverId)?.instances.find((i) => i.id === this.r.instance);
  }
  check = (model: Readonly<Model>): boolean => this.#instance(model) !== undefined;
  async run(model: Model, real: Real): Promise<void> {
    const { replica, namespace, serverId } = this.r;
    const { id, set, requestId, ttlMs, held } = this.#instance(model) as Instance;
    const more = { namespace, instanceId: id, ttlMs, requestId };
    const again = await real.client(replica).register(serverId, definitions(serverId, set), more);
    expect(again.leaseId).toBe(held.leaseId);
    await real.check(model, replica + 1);
  }
  toString = (): string => `Repeat the last Register ${where(this.r)} by ${this.r.instance}`;
}

/** Two instances at once, at two replicas: the later revision's set is the server's. */
export class Race implements Step {
  constructor(
    private readonly one: Registering,
    private readonly other: Registering,
  ) {}
  check = (): boolean => true;
  async run(model: Model, real: Real): Promise<void> {
    const both = [this.one, { ...this.other, namespace: this.one.namespace, serverId: this.one.serverId, replica: this.one.replica + 1, instance: "instance-racer" }];
    const done = await Promise.all(
      both.map(async (r) => {
        const requestId = `request-${++requests}`;
        const more = { namespace: r.namespace, instanceId: r.instance, ttlMs: ttlOf(r), requestId };
        const held = await real.client(r.replica).register(r.serverId, definitions(r.serverId, r.set), more);
        return { r, instance: { id: r.instance, set: r.set, held, ttlMs: ttlOf(r), requestId } };
      }),
    );
    const number = (revision: string): number => parseRevision(revision)?.revision ?? 0;
    done.sort((a, b) => number(a.instance.held.revision) - number(b.instance.held.revision));
    for (const { r, instance } of done) note(model, real, r, instance);
    await real.check(model, this.one.replica);
  }
  toString = (): string => `Race ${where(this.one)}: ${this.one.instance} [${shownSet(this.one.set)}] and instance-racer [${shownSet(this.other.set)}]`;
}

/** All instances of a server, living ones and ended ones. */
export class Renew implements Step {
  constructor(private readonly at: Named) {}
  check = (model: Readonly<Model>): boolean => model.server(this.at.namespace, this.at.serverId) !== undefined;
  async run(model: Model, real: Real): Promise<void> {
    const { namespace, serverId, replica } = this.at;
    const server = model.server(namespace, serverId) as Server;
    // A replica judges by what it has folded.
    await real.client(replica).call("listServers", { namespace, minRevision: model.revision });
    for (const instance of server.instances.filter((i) => i.ttlMs > 0)) {
      expect(await real.client(replica).renew(instance.held, namespace), instance.id).toBe(model.renewal(server, instance));
    }
  }
  toString = (): string => `Renew ${where(this.at)}`;
}

/** A process that does not know yet that it is gone. */
export class RenewLate implements Step {
  constructor(private readonly replica: number) {}
  check = (model: Readonly<Model>): boolean => model.ended.size > 0;
  async run(model: Model, real: Real): Promise<void> {
    const [leaseId, why] = [...model.ended].at(-1) as [string, string];
    const namespaces = await Promise.all(NAMESPACES.map((ns) => real.client(this.replica).renew({ leaseId, setDigest: "", etag: "", revision: "" }, ns)));
    for (const state of namespaces) expect(["UNKNOWN_LEASE", why === "deregistered" ? "DEREGISTERED" : "UNKNOWN_LEASE"]).toContain(state);
    await real.check(model, this.replica);
  }
  toString = (): string => `RenewLate ${"ab"[this.replica]}`;
}

export class DeregisterLease implements Step {
  constructor(
    private readonly at: Named,
    private readonly oldest: boolean,
  ) {}
  #leased(model: Readonly<Model>): Instance[] {
    return model.server(this.at.namespace, this.at.serverId)?.instances.filter((i) => i.ttlMs > 0) ?? [];
  }
  check = (model: Readonly<Model>): boolean => this.#leased(model).length > 0;
  async run(model: Model, real: Real): Promise<void> {
    const { namespace, serverId, replica } = this.at;
    const instance = this.#leased(model).at(this.oldest ? 0 : -1) as Instance;
    const { removed, revision } = await real.client(replica).deregister({ case: "leaseId", value: instance.held.leaseId }, namespace);
    expect(removed).toBe(true);
    model.ends(model.server(namespace, serverId) as Server, [instance], "deregistered");
    model.revision = revision;
    real.believe(model, namespace, serverId);
    await real.check(model, replica + 1);
  }
  toString = (): string => `DeregisterLease ${where(this.at)}, the ${this.oldest ? "oldest" : "newest"} instance`;
}

export class DeregisterServer implements Step {
  constructor(private readonly at: Named) {}
  check = (): boolean => true;
  async run(model: Model, real: Real): Promise<void> {
    const { namespace, serverId, replica } = this.at;
    const server = model.server(namespace, serverId);
    const { removed, revision } = await real.client(replica).deregister({ case: "serverId", value: serverId }, namespace);
    expect(removed).toBe(server !== undefined);
    if (server) {
      model.ends(server, server.instances, "deregistered");
      model.revision = revision;
      real.believe(model, namespace, serverId);
    }
    await real.check(model, replica + 1);
  }
  toString = (): string => `DeregisterServer ${where(this.at)}`;
}

export class DeregisterTool implements Step {
  constructor(
    private readonly at: Named,
    private readonly name: string,
  ) {}
  check = (model: Readonly<Model>): boolean => model.server(this.at.namespace, this.at.serverId) !== undefined;
  async run(model: Model, real: Real): Promise<void> {
    const { namespace, serverId, replica } = this.at;
    const server = model.server(namespace, serverId) as Server;
    const { removed, revision } = await real.client(replica).deregister({ case: "toolId", value: `${serverId}/${this.name}` }, namespace);
    expect(removed).toBe(this.name in server.tools);
    const { [this.name]: gone, ...tools } = server.tools;
    if (gone !== undefined) {
      server.tools = tools;
      model.revision = revision;
      real.believe(model, namespace, serverId);
    }
    await real.check(model, replica + 1);
  }
  toString = (): string => `DeregisterTool ${where(this.at)}/${this.name}`;
}

/** So long that whoever is mortal ends, the brake's second term included; the others renew. */
export class Expire implements Step {
  check = (model: Readonly<Model>): boolean => model.all.some((s) => s.instances.some((i) => i.ttlMs === MORTAL_MS));
  async run(model: Model, real: Real): Promise<void> {
    const leaving = new Set<string>();
    const touched = model.all;
    for (const server of model.all) {
      const mortal = server.instances.filter((i) => i.ttlMs === MORTAL_MS);
      for (const { id } of mortal) leaving.add(`${server.namespace} ${server.serverId} ${id}`);
      if (mortal.length > 0) model.ends(server, mortal, "expired");
    }
    const gone = async (): Promise<boolean> => {
      for (const [n] of real.ground.clients.entries()) {
        for (const namespace of NAMESPACES) {
          const { servers } = await real.client(n).call("listServers", { namespace });
          const here = servers.flatMap((s) => s.instances.map((i) => `${namespace} ${s.serverId} ${i.instanceId}`));
          if (here.some((key) => leaving.has(key))) return false;
        }
      }
      return true;
    };
    let over = false;
    for (let turn = 0; turn < 6 && !over; turn++) {
      await real.ground.elapse(MORTAL_MS + 1_000);
      over = await real.ground.until(gone);
    }
    expect(over, "leases that ran out are gone").toBe(true);
    for (const { namespace, serverId } of touched) real.believe(model, namespace, serverId);
    for (const server of model.all) {
      for (const instance of server.instances.filter((i) => i.ttlMs > 0)) {
        expect(await real.client(0).renew(instance.held, server.namespace)).toBe(model.renewal(server, instance));
      }
    }
    for (const [n] of real.ground.clients.entries()) await real.check(model, n);
  }
  toString = (): string => "Expire whoever is mortal";
}

export class Operate implements Step {
  constructor(
    private readonly at: Named,
    private readonly action: "isolateServer" | "resumeServer",
  ) {}
  check = (model: Readonly<Model>): boolean => model.server(this.at.namespace, this.at.serverId) !== undefined;
  async run(model: Model, real: Real): Promise<void> {
    const { namespace, serverId, replica } = this.at;
    await real.client(replica).call(this.action, { namespace, serverId, why: "a test says so" });
    await real.check(model, replica + 1);
  }
  toString = (): string => `${this.action} ${where(this.at)}`;
}

/** Withheld, and released again, so that nothing of it is left: those who watch have to hear both. */
export class Quarantine implements Step {
  constructor(
    private readonly at: Named,
    private readonly name: string,
    private readonly any: boolean,
  ) {}
  /** Of several: what lists nothing of a server looks to the validators like a lease that was ended too early. */
  check = (model: Readonly<Model>): boolean => {
    const tools = model.server(this.at.namespace, this.at.serverId)?.tools ?? {};
    return tools[this.name] !== undefined && Object.keys(tools).length > 1;
  };
  async run(model: Model, real: Real): Promise<void> {
    const { namespace, serverId, replica } = this.at;
    const server = model.server(namespace, serverId) as Server;
    const toolId = `${serverId}/${this.name}`;
    const { [this.name]: _, ...left } = server.tools;
    const shown = server.tools;
    server.tools = left;
    real.believe(model, namespace, serverId);
    const { withheld, revision } = await real.client(replica).call("quarantineTool", { namespace, toolId, reason: "a test says so" });
    expect(withheld).toBe(true);
    model.revision = revision;
    await real.check(model, replica + 1);
    const released = await real.client(replica + 1).call("approveTool", { namespace, toolId, anyDigest: this.any });
    // With the approval of one definition a quarantine would go on; a model of that would have to know what a lost store remembers.
    if (!this.any) await real.client(replica).call("approveTool", { namespace, toolId, anyDigest: true });
    expect(released.released).toBe(true);
    server.tools = shown;
    model.revision = released.revision;
    real.believe(model, namespace, serverId);
    await real.check(model, replica);
  }
  toString = (): string => `Quarantine ${where(this.at)}/${this.name}, and approve ${this.any ? "any" : "its"} definition`;
}

export const named = (r: Named): Named => ({ replica: r.replica, namespace: r.namespace, serverId: r.serverId });

export const registering: fc.Arbitrary<Registering> = fc.record({
  replica: fc.nat(1),
  namespace: fc.constantFrom("", "", "tenant"),
  serverId: fc.constantFrom(...SERVERS),
  instance: fc.constantFrom("instance-1", "instance-2"),
  mortal: fc.boolean(),
  // In name order, so that equal sets are written alike.
  set: fc
    .record({ t1: fc.nat(2), t2: fc.nat(2), u1: fc.nat(2) }, { requiredKeys: [] })
    .map((set) => (Object.keys(set).length === 0 ? { t1: 0 } : set)),
});
