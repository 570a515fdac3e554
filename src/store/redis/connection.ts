/** The connection for requests: it comes back by itself, and until then every call fails at once. */
import { Cluster } from "ioredis";
import type { Redis } from "ioredis";
import type { Logger } from "../../catalogue/ports.js";
import { storeUnavailable } from "../../domain/fault.js";
import { describeRedis, formatNode, type RedisNode } from "../../domain/redis-address.js";
import { type CheckedServer, checkPartitions, checkServer, type Wanted } from "./check.js";
import type { Access, Client } from "./client.js";
import { createClient, onNode } from "./client.js";
import { outageOf } from "./outage.js";
import type { Reply } from "./reply.js";
import { faultOf, isReplyError } from "./reply.js";
import type { Script } from "./script.js";
import { MisfitError } from "./send.js";

export interface ConnectionOptions {
  readonly access: Access;
  readonly keyPrefix: string;
  /** Undefined takes what the store has, 1 for a new one. */
  readonly partitions: number | undefined;
  readonly logger: Logger;
  /** A command that is not answered within this has failed. */
  readonly commandTimeoutMs: number;
  /** How long opening waits for Redis before it goes on without. */
  readonly openTimeoutMs: number;
  /** How often a Redis that fits is looked at again. */
  readonly lookMs: number;
  /** Hears of every server that is connected to. */
  readonly onNode: (node: RedisNode) => void;
  /** Hears the number that the store has, when opening could not wait for it. */
  readonly onPartitions: (count: number) => void;
}

/** Longest pause between two attempts to connect. */
const RECONNECT_MAX_MS = 1_000;
/** Until the next look at a Redis that is connected and does not fit, or did not answer. */
const RECHECK_MS = 1_000;

type State =
  | { readonly kind: "connecting" }
  | { readonly kind: "ready" }
  /** Connected to a Redis that does not fit; `refusal` says why. */
  | { readonly kind: "refused"; readonly refusal: Error }
  | { readonly kind: "closed" };

export class Connection {
  private readonly client: Client;
  private readonly wanted: Wanted;
  private state: State = { kind: "connecting" };
  private outageLogged = false;
  /** Why there is no connection. */
  private problem: unknown = new Error("Redis has not answered yet");
  private opening = true;
  private recheck: NodeJS.Timeout | undefined;
  private onSettled: () => void = () => {};
  /** What the store has; undefined until it was asked. */
  partitions: number | undefined;

  constructor(private readonly options: ConnectionOptions) {
    const { access, keyPrefix, partitions, logger, commandTimeoutMs } = options;
    this.wanted = { keyPrefix, user: access.address.user, partitions, logger, said: new Set() };
    this.client = createClient(access, {
      name: "toolcrib",
      // A peer that went away without a word is noticed by its silence, and connected to anew.
      options: { commandTimeout: commandTimeoutMs, socketTimeout: commandTimeoutMs },
      retry: (times) => Math.min(50 * times, RECONNECT_MAX_MS),
    });
    this.client.on("error", (error: Error) => this.lost(error));
    this.client.on("close", () => {
      // An attempt that failed has said why already.
      if (this.state.kind === "ready") this.lost(new Error("the connection was closed"));
    });
    this.client.on("ready", () => void this.settle());
    onNode(this.client, options.onNode);
  }

  /**
   * Waits for Redis at most openTimeoutMs; without it, calls throw STORE_UNAVAILABLE until it is back. Throws an Error
   * when Redis is there and does not fit.
   */
  async open(): Promise<void> {
    const settled = new Promise<void>((resolve) => (this.onSettled = resolve));
    // Refused connections are told through the error event, and tried again.
    this.client.connect().catch(() => {});
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, this.options.openTimeoutMs)));
    await Promise.race([settled, late]);
    clearTimeout(timer);
    this.opening = false;
    if (this.state.kind === "refused") {
      const { refusal } = this.state;
      this.close();
      throw refusal;
    }
  }

  async call(command: string, ...args: (string | number | Uint8Array)[]): Promise<Reply> {
    this.check();
    try {
      return await this.send(command, args);
    } catch (error) {
      throw faultOf(error);
    }
  }

  async run(script: Script, keys: readonly string[], args: readonly (string | number | Uint8Array)[]): Promise<Reply> {
    this.check();
    const rest = [keys.length, ...keys, ...args];
    try {
      return await this.send("EVALSHA", [script.sha, ...rest]);
    } catch (error) {
      // A Redis that was restarted, flushed of scripts or failed over does not know it yet; EVAL teaches it.
      if (isReplyError(error, "NOSCRIPT")) return this.call("EVAL", script.source, ...rest);
      throw faultOf(error);
    }
  }

  close(): void {
    this.state = { kind: "closed" };
    clearTimeout(this.recheck);
    this.client.disconnect();
  }

  private check(): void {
    if (this.state.kind === "closed") throw storeUnavailable(new Error("the store is closed"));
    if (this.state.kind === "refused") throw storeUnavailable(this.state.refusal);
    // Before the number of partitions is known, a namespace could be taken for one of another partition.
    if (this.partitions === undefined || this.client.status !== "ready") throw storeUnavailable(this.problem);
  }

  private async send(command: string, args: readonly (string | number | Uint8Array)[]): Promise<Reply> {
    return (await this.client.callBuffer(command, args.map(argument))) as Reply;
  }

  private async settle(): Promise<void> {
    clearTimeout(this.recheck);
    if (this.state.kind === "closed") return;
    const { logger } = this.options;
    try {
      for (const server of this.servers()) await checkServer(server, this.wanted);
      this.learned(await checkPartitions((command, args) => this.send(command, args), this.wanted));
      this.became({ kind: "ready" });
      if (this.outageLogged) logger.info({}, "Redis is back");
      this.outageLogged = false;
      this.settleAgain(this.options.lookMs);
    } catch (error) {
      this.settleAgain(RECHECK_MS);
      if (!(error instanceof MisfitError)) return this.lost(error);
      const known = this.state.kind === "refused" && this.state.refusal.message === error.message;
      this.became({ kind: "refused", refusal: error });
      if (!known) logger.error({ reason: error.message }, "this Redis cannot be used; looking again");
    }
    this.onSettled();
  }

  private became(state: State): void {
    if (this.state.kind !== "closed") this.state = state;
  }

  /**
   * Whoever changes a setting or an ACL rule does not close our connection, a flush takes the number of partitions along,
   * and a Cluster gets new nodes.
   */
  private settleAgain(afterMs: number): void {
    clearTimeout(this.recheck);
    if (this.state.kind === "closed") return;
    this.recheck = setTimeout(() => {
      if (this.client.status === "ready") void this.settle();
    }, afterMs);
    this.recheck.unref();
  }

  private learned(count: number): void {
    const begunWith = this.partitions ?? (this.opening ? count : (this.options.partitions ?? 1));
    if (begunWith !== count) {
      this.options.onPartitions(count);
      throw new MisfitError(`the store has ${count} partitions and this replica began with ${begunWith}: it has to start again`);
    }
    this.partitions = count;
  }

  /** Those whose settings matter: of a Cluster, every primary. */
  private servers(): CheckedServer[] {
    const { client } = this;
    if (client instanceof Cluster) return client.nodes("master").map(serverOf);
    return [{ ...serverOf(client), name: describeRedis(this.options.access.address) }];
  }

  /** Logged once per outage; ioredis reports every attempt. The message of its errors never holds the password. */
  private lost(error: unknown): void {
    if (this.state.kind === "closed") return;
    this.state = { kind: "connecting" };
    const { address } = this.options.access;
    const { text, reason, problem } = outageOf(error, address);
    this.problem = problem;
    if (this.outageLogged) return;
    this.outageLogged = true;
    this.options.logger.warn({ redis: describeRedis(address), reason }, `${text}; trying again`);
  }
}

function serverOf(redis: Redis): CheckedServer {
  return {
    name: formatNode({ host: redis.options.host ?? "", port: redis.options.port ?? 0 }),
    send: async (command, args) => (await redis.callBuffer(command, [...args])) as Reply,
  };
}

export function argument(value: string | number | Uint8Array): string | number | Buffer {
  return value instanceof Uint8Array ? Buffer.from(value.buffer, value.byteOffset, value.byteLength) : value;
}
