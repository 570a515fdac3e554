/** The connection for requests: it comes back by itself, and until then every call fails at once. */
import { Redis } from "ioredis";
import type { RedisOptions } from "ioredis";
import type { Logger } from "../../catalogue/ports.js";
import { storeUnavailable } from "../../domain/fault.js";
import { checkServer } from "./check.js";
import type { Reply } from "./reply.js";
import { faultOf, isReplyError } from "./reply.js";
import type { Script } from "./script.js";

export interface ConnectionOptions {
  /** `redis://` or `rediss://`. */
  readonly url: string;
  readonly keyPrefix: string;
  readonly partitions: number;
  readonly logger: Logger;
  /** A command that is not answered within this has failed. */
  readonly commandTimeoutMs: number;
  /** How long opening waits for Redis before it goes on without. */
  readonly openTimeoutMs: number;
}

/** Longest pause between two attempts to connect. */
const RECONNECT_MAX_MS = 1_000;

/** What both kinds of connection share. Replies come as RESP2, whose lists are the same on all versions. */
export const COMMON_OPTIONS: RedisOptions = {
  protocol: 2,
  connectTimeout: 2_000,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  // A command whose connection went away is refused at once; whoever sent it decides whether to send it again.
  maxRetriesPerRequest: 0,
  maxLoadingRetryTime: 1_000,
  lazyConnect: true,
};

type State =
  | { readonly kind: "connecting" }
  | { readonly kind: "ready" }
  /** Connected to a Redis that does not fit; `refusal` says why. */
  | { readonly kind: "refused"; readonly refusal: Error }
  | { readonly kind: "closed" };

export class Connection {
  private readonly redis: Redis;
  private state: State = { kind: "connecting" };
  private outageLogged = false;
  private onSettled: () => void = () => {};

  constructor(private readonly options: ConnectionOptions) {
    this.redis = new Redis(options.url, {
      ...COMMON_OPTIONS,
      commandTimeout: options.commandTimeoutMs,
      // A peer that went away without a word is noticed by its silence, and connected to anew.
      socketTimeout: options.commandTimeoutMs,
      connectionName: "toolcrib",
      retryStrategy: (times) => Math.min(50 * times, RECONNECT_MAX_MS),
    });
    this.redis.on("error", (error: Error) => this.lost(error));
    this.redis.on("close", () => this.lost(new Error("the connection was closed")));
    this.redis.on("ready", () => void this.settle());
  }

  /**
   * Waits for Redis at most openTimeoutMs; without it, calls throw STORE_UNAVAILABLE until it is back. Throws an Error
   * when Redis is there and does not fit.
   */
  async open(): Promise<void> {
    const settled = new Promise<void>((resolve) => (this.onSettled = resolve));
    // Refused connections are told through the error event, and tried again.
    this.redis.connect().catch(() => {});
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, this.options.openTimeoutMs)));
    await Promise.race([settled, late]);
    clearTimeout(timer);
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
    this.redis.disconnect();
  }

  private check(): void {
    if (this.state.kind === "closed") throw storeUnavailable(new Error("the store is closed"));
    if (this.state.kind === "refused") throw storeUnavailable(this.state.refusal);
  }

  private async send(command: string, args: readonly (string | number | Uint8Array)[]): Promise<Reply> {
    return (await this.redis.callBuffer(command, args.map(argument))) as Reply;
  }

  private async settle(): Promise<void> {
    if (this.state.kind === "closed") return;
    const { logger, keyPrefix, partitions } = this.options;
    try {
      await checkServer((command, args) => this.send(command, args), { keyPrefix, partitions, logger });
      this.state = { kind: "ready" };
      if (this.outageLogged) logger.info({}, "Redis is back");
      this.outageLogged = false;
    } catch (error) {
      if (error instanceof Error && error.name === "MisfitError") {
        this.state = { kind: "refused", refusal: error };
        logger.error({ reason: error.message }, "this Redis cannot be used");
      } else return this.lost(error);
    }
    this.onSettled();
  }

  /** Logged once per outage; ioredis reports every attempt. The message of its errors never holds the password. */
  private lost(error: unknown): void {
    if (this.state.kind === "closed") return;
    this.state = { kind: "connecting" };
    if (this.outageLogged) return;
    this.outageLogged = true;
    const reason = error instanceof Error ? error.message : String(error);
    this.options.logger.warn({ reason }, "Redis cannot be reached; trying again");
  }
}

export function argument(value: string | number | Uint8Array): string | number | Buffer {
  return value instanceof Uint8Array ? Buffer.from(value.buffer, value.byteOffset, value.byteLength) : value;
}
