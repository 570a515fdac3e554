/** Commands that break the store's history under everybody, and how registrants and operators set it right. */
import { expect } from "vitest";
import { parseRevision } from "../../src/domain/revision.js";
import type { Client } from "../validators/client.js";
import { SERVERS, type Step } from "./commands.js";
import { definitions, type Instance, type Model, type Server } from "./model.js";
import { NAMESPACES, type Real } from "./real.js";

function heads(clients: readonly Client[]) {
  return Promise.all(clients.map((client) => client.call("listServers", {})));
}

/** A replica compares its log with the store's at least every second. */
const NOTICED_MS = 3_000;

/**
 * Runs what loses something, until every replica has noticed. Where standing servers were all that was lost, they may be back
 * by then under the very same revisions, and nothing is left to be seen of it.
 */
async function losing(real: Real, lose: () => Promise<void>): Promise<void> {
  const { recorder, clients, until } = real.ground;
  recorder.facts = { ...recorder.facts, oneHistory: false };
  const before = await heads(clients);
  const loss = recorder.fault("store-lost");
  await lose();
  const lostMs = recorder.now().ms;
  const noticed = async (): Promise<boolean> => {
    const now = await heads(clients);
    const seen = now.every(({ stale, revision }, i) => stale || revision !== before[i]?.revision);
    return seen || recorder.now().ms > lostMs + NOTICED_MS;
  };
  expect(await until(noticed), "a lost history is noticed").toBe(true);
  loss.end();
}

async function registerAgain(model: Model, real: Real, server: Server, instance: Instance): Promise<void> {
  const { namespace, serverId } = server;
  const { id, set, ttlMs, requestId } = instance;
  const held = await real.client(0).register(serverId, definitions(serverId, set), { namespace, instanceId: id, ttlMs, requestId });
  model.registered(namespace, serverId, { ...instance, held });
  model.revision = held.revision;
  real.believe(model, namespace, serverId);
}

/** Every replica serves the new history, whole. */
async function whole(model: Model, real: Real): Promise<void> {
  const { clients, until } = real.ground;
  const same = async (): Promise<boolean> => {
    for (const client of clients) {
      for (const namespace of NAMESPACES) {
        const { stale } = await client.call("listServers", { namespace });
        const ids = await client.list({ namespace });
        if (stale || JSON.stringify(ids) !== JSON.stringify(model.ids(namespace))) return false;
      }
    }
    return true;
  };
  expect(await until(same), "everybody is back after the store lost something").toBe(true);
  model.revision = (await real.client(0).call("listServers", {})).revision;
  // Tombstones went, or came back, with everything else.
  model.ended.clear();
  real.leaveAll();
}

/** The store loses everything. Registrants hear of it at their next renewal, and standing servers come back by themselves. */
export class Lose implements Step {
  // A store without a commit has nothing to lose, and nobody could tell.
  check = (model: Readonly<Model>): boolean => (parseRevision(model.revision)?.revision ?? 0) > 0;
  async run(model: Model, real: Real): Promise<void> {
    const { lose } = real.ground;
    if (!lose) return;
    real.saved = undefined;
    await losing(real, lose);
    for (const server of model.all) {
      for (const instance of server.instances.filter((i) => i.ttlMs > 0)) {
        expect(await real.client(0).renew(instance.held, server.namespace), `${server.serverId} ${instance.id}`).toBe("UNKNOWN_LEASE");
        await registerAgain(model, real, server, instance);
      }
    }
    await whole(model, real);
  }
  toString = (): string => "Lose everything in the store";
}

export class Save implements Step {
  check = (): boolean => true;
  async run(model: Model, real: Real): Promise<void> {
    const restore = await real.ground.save?.();
    if (restore) real.saved = { revision: model.revision, restore };
  }
  toString = (): string => "Save what is in the store";
}

/**
 * A failover that loses acknowledged writes: old and new history begin alike. What had been taken away is back then; operators take
 * it away again, and whoever lives registers once more.
 */
export class Rewind implements Step {
  check = (): boolean => true;
  async run(model: Model, real: Real): Promise<void> {
    const { saved } = real;
    const ago = (revision: string): number => parseRevision(revision)?.revision ?? 0;
    if (!saved || ago(saved.revision) >= ago(model.revision)) return;
    real.saved = undefined;
    await losing(real, saved.restore);
    // What came back is in the new catalogue, which grows beside the one that is still served.
    for (const namespace of NAMESPACES) {
      for (const serverId of SERVERS) await real.client(0).deregister({ case: "serverId", value: serverId }, namespace);
    }
    for (const server of model.all) for (const instance of [...server.instances]) await registerAgain(model, real, server, instance);
    await whole(model, real);
  }
  toString = (): string => "Rewind the store to what was saved";
}
