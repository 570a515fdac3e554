import { setTimeout as delay } from "node:timers/promises";
import type { RegistryConnection } from "../../client/connection.js";
import type { Follower } from "../../client/follower/follower.js";
import { type RegistryError, registryError } from "../../client/registry-error.js";
import type { Notice } from "../../gen/toolcrib/v1/registry_service_pb.js";
import type { Server } from "../../gen/toolcrib/v1/server_pb.js";
import { follow } from "../follow.js";
import { Metrics, askOps } from "../ops.js";
import { allServers } from "../servers.js";
import { eventLines } from "../watch-lines.js";
import type { View } from "./frame.js";
import type { Reading } from "./rates.js";

const ASK_MS = 800;
/** Conditions may change without an event, so the list is read now and then even when nothing was heard. */
const LIST_EVERY_MS = 5_000;
const CHANGES_KEPT = 100;
const AGAIN_MS = 1_000;

/** Gathers what the frames show. */
export class Source {
  #servers: readonly Server[] = [];
  #notices: readonly Notice[] = [];
  #stale = false;
  #revision = "";
  #trouble: RegistryError | undefined;
  #readings: Reading[] = [];
  #changes: string[] = [];
  #listedAtMs = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly registry: RegistryConnection,
    private readonly namespace: string,
    private readonly opsBase: string,
    private readonly ending: AbortSignal,
  ) {}

  /** Follows the changes until it is ended. Rejects where trying again cannot help, such as without a credential. */
  async follow(): Promise<void> {
    while (!this.ending.aborted) {
      try {
        await follow(this.registry, { namespace: this.namespace }, (follower) => this.#listen(follower), this.ending);
      } catch (error) {
        const failed = registryError(error);
        if (!failed.transient) throw failed;
        await delay(AGAIN_MS, undefined, { signal: this.ending }).catch(() => undefined);
      }
    }
  }

  #listen(follower: Follower): void {
    follower.on("relist", () => this.#remember(["--:--:--  changes were missed here"]));
    follower.on("change", (change) => {
      if (change.source !== "snapshot") this.#remember(eventLines(change, false));
      this.#listedAtMs = Number.NEGATIVE_INFINITY;
    });
  }

  /** Reads anew what is due. Rejects as `follow` does. */
  async refresh(): Promise<void> {
    await Promise.all([this.#readMetrics(), this.#readServers()]);
  }

  /** Why the servers could not be read the last time. */
  get trouble(): RegistryError | undefined {
    return this.#trouble;
  }

  view(): View {
    return {
      address: this.registry.target.address,
      namespace: this.namespace,
      now: new Date(),
      trouble: this.#trouble?.message ?? "",
      servers: this.#servers,
      notices: this.#notices,
      stale: this.#stale,
      revision: this.#revision,
      readings: this.#readings,
      opsBase: this.opsBase,
      changes: this.#changes,
    };
  }

  async #readMetrics(): Promise<void> {
    try {
      const { status, body } = await askOps(this.opsBase, "/metrics", this.registry.target.access, ASK_MS, this.ending);
      if (status !== 200) throw new Error(`the ops listener answers ${status}`);
      this.#readings = [...this.#readings.slice(-1), { metrics: new Metrics(body), atMs: performance.now() }];
    } catch {
      this.#readings = []; // The frame says that there are no rates.
    }
  }

  async #readServers(): Promise<void> {
    const now = performance.now();
    if (now - this.#listedAtMs < LIST_EVERY_MS && !this.#trouble) return;
    this.#listedAtMs = now;
    try {
      const { servers, stale, revision, notices } = await allServers(this.registry, this.namespace);
      this.#servers = servers;
      this.#notices = notices;
      this.#stale = stale;
      this.#revision = revision;
      this.#trouble = undefined;
    } catch (error) {
      const failed = registryError(error);
      if (!failed.transient) throw failed;
      this.#trouble = failed;
    }
  }

  #remember(lines: readonly string[]): void {
    this.#changes = [...lines].reverse().concat(this.#changes).slice(0, CHANGES_KEPT);
  }
}
