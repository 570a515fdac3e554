/** The registry of one run, with the watchers that are open and the tokens that were left. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { expect } from "vitest";
import type { StubFilterSchema } from "../../src/gen/toolcrib/v1/stub_pb.js";
import type { Client, Watcher } from "../validators/client.js";
import { Refused } from "../validators/links.js";
import type { Ground } from "./ground.js";
import type { Model } from "./model.js";

export type FilterInit = MessageInitShape<typeof StubFilterSchema>;

export const NAMESPACES = ["", "tenant"] as const;

export interface OpenWatch {
  readonly watcher: Watcher;
  readonly namespace: string;
  readonly filter: FilterInit;
}

export class Real {
  readonly open: OpenWatch[] = [];
  readonly left: OpenWatch[] = [];
  /** What the store can be taken back to, and how far it was then. */
  saved: { readonly revision: string; readonly restore: () => Promise<void> } | undefined;

  constructor(readonly ground: Ground) {}

  /** Every replica has loaded its catalogue. */
  async ready(): Promise<void> {
    for (const client of this.ground.clients) {
      const answers = (): Promise<boolean> => client.list().then(() => true, () => false);
      expect(await this.ground.until(answers), "a replica becomes ready").toBe(true);
    }
  }

  /** Replicas are asked in turn, whatever number a command drew. */
  client(n: number): Client {
    const { clients } = this.ground;
    return clients[n % clients.length] as Client;
  }

  /** What is listed is what the model holds, wherever it is read. */
  async check(model: Model, n: number): Promise<void> {
    for (const namespace of NAMESPACES) {
      const ids = await this.client(n).list({ namespace, minRevision: model.revision });
      expect(ids, `what is listed in '${namespace}'`).toEqual(model.ids(namespace));
    }
  }

  /** The registrants of a server now hold this. */
  believe(model: Model, namespace: string, serverId: string): void {
    const tools = model.server(namespace, serverId)?.tools;
    this.ground.recorder.believes(namespace || "default", serverId, tools && Object.keys(tools));
  }

  leaveAll(): void {
    for (const open of this.open.splice(0)) {
      open.watcher.leave();
      if (open.watcher.token !== "") this.left.push(open);
    }
  }
}

/** The reason of a refusal; whatever else fails is a failure. */
export async function reasonOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return "";
  } catch (error) {
    if (error instanceof Refused) return error.failure.reason;
    throw error;
  }
}
