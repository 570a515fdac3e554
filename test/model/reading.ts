/** Commands of readers: lists, definitions and watches; and what breaks a history under them. */
import fc from "fast-check";
import { expect } from "vitest";
import { Availability } from "../../src/gen/toolcrib/v1/stub_pb.js";
import type { Step } from "./commands.js";
import { definition, type Model } from "./model.js";
import { type FilterInit, NAMESPACES, type OpenWatch, type Real } from "./real.js";

export const FILTERS: Readonly<Record<string, FilterInit>> = {
  everything: {},
  "server s1": { serverIds: ["s1"] },
  "names t…": { namePrefix: "t" },
  "what is available": { availability: Availability.AVAILABLE },
};

export const filterName = fc.constantFrom(...Object.keys(FILTERS));

/** At every replica, so that two readers may be compared. */
export class Read implements Step {
  constructor(
    private readonly filter: string,
    private readonly pageSize: number,
  ) {}
  check = (): boolean => true;
  async run(model: Model, real: Real): Promise<void> {
    const filter = FILTERS[this.filter] ?? {};
    for (const [n] of real.ground.clients.entries()) {
      for (const namespace of NAMESPACES) {
        await real.client(n).list({ namespace, filter, pageSize: this.pageSize, minRevision: model.revision });
      }
    }
  }
  toString = (): string => `Read ${this.filter} in pages of ${this.pageSize || "the default size"}`;
}

/** The definitions of everything that is listed. */
export class Load implements Step {
  constructor(private readonly replica: number) {}
  check = (model: Readonly<Model>): boolean => model.all.length > 0;
  async run(model: Model, real: Real): Promise<void> {
    const client = real.client(this.replica);
    for (const { namespace, serverId, tools } of model.all) {
      await client.call("listServers", { namespace, minRevision: model.revision });
      for (const [name, version] of Object.entries(tools)) {
        expect(await client.definition(`${serverId}/${name}`, namespace)).toBe(JSON.stringify(definition(serverId, name, version)));
      }
    }
  }
  toString = (): string => `Load all definitions at ${"ab"[this.replica]}`;
}

export class Watch implements Step {
  constructor(
    private readonly replica: number,
    private readonly namespace: string,
    private readonly filter: string,
  ) {}
  check = (): boolean => true;
  async run(_: Model, real: Real): Promise<void> {
    const filter = FILTERS[this.filter] ?? {};
    const { namespace } = this;
    const watcher = real.client(this.replica).watch({ namespace, filter });
    real.open.push({ watcher, namespace, filter });
    expect(await real.ground.until(async () => watcher.bookmarks > 0)).toBe(true);
  }
  toString = (): string => `Watch ${this.filter} of ${this.namespace || "default"} at ${"ab"[this.replica]}`;
}

export class Leave implements Step {
  constructor(private readonly nth: number) {}
  check = (): boolean => true;
  async run(_: Model, real: Real): Promise<void> {
    const [open] = real.open.splice(this.nth % Math.max(1, real.open.length), 1);
    open?.watcher.leave();
    if (open && open.watcher.token !== "") real.left.push(open);
  }
  toString = (): string => `Leave watch ${this.nth}`;
}

/** With a token that somebody left behind, however old it is: it goes on, or is told to begin again. */
export class Resume implements Step {
  constructor(
    private readonly replica: number,
    private readonly nth: number,
  ) {}
  check = (): boolean => true;
  async run(_: Model, real: Real): Promise<void> {
    const old = real.left[this.nth % Math.max(1, real.left.length)];
    if (!old) return;
    const { namespace, filter, watcher: before } = old;
    const watcher = real.client(this.replica).watch({ namespace, filter, resumeToken: before.token });
    const open: OpenWatch = { watcher, namespace, filter };
    expect(await real.ground.until(async () => watcher.bookmarks > 0 || watcher.failure !== undefined)).toBe(true);
    if (!watcher.failure) return void real.open.push(open);
    expect(watcher.failure.reason).toBe("RELIST_REQUIRED");
  }
  toString = (): string => `Resume watch ${this.nth} at ${"ab"[this.replica]}`;
}

/** Stops and starts again: what was acknowledged is there. */
export class Reopen implements Step {
  check = (): boolean => true;
  async run(model: Model, real: Real): Promise<void> {
    const { reopen } = real.ground;
    if (!reopen) return;
    real.leaveAll();
    await reopen();
    await real.ready();
    await real.check(model, 0);
  }
  toString = (): string => "Stop, and start again";
}
