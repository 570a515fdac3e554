import { setTimeout as delay } from "node:timers/promises";
import { Command } from "commander";
import type { RegistryConnection } from "../client/connection.js";
import { RegistryError, registryError } from "../client/registry-error.js";
import { backoffMs } from "../client/timers.js";
import type { Change, WatchResponse } from "../gen/toolcrib/v1/registry_service_pb.js";
import type { Io } from "./io.js";
import { line } from "./io.js";
import type { RegistryOptions } from "./options.js";
import { collect, withConnection, withJson, withRegistry } from "./options.js";
import { grouped } from "./table.js";
import { eventLines } from "./watch-lines.js";

interface WatchOptions extends RegistryOptions {
  readonly tag?: string[];
  readonly server?: string[];
  readonly prefix?: string;
  readonly json?: boolean;
}

/** Bookmarks come every 10 s: a stream that is silent for longer is a connection that died without a word. */
const SILENCE_MS = 35_000;

export function watchCommand(io: Io): Command {
  const command = new Command("watch")
    .description("print every change of the list as it happens")
    .option("--tag <tag>", "only tools with every one of these tags", collect)
    .option("--server <id>", "only tools of these servers", collect)
    .option("--prefix <text>", "only tools whose name begins like this");
  return withJson(withRegistry(command)).action((options: WatchOptions) =>
    withConnection(options, (registry, namespace) => new Watcher(io, registry, namespace, options).run()),
  );
}

class Watcher {
  #token = "";
  #known = 0;
  #greeted = false;
  #failures = 0;
  /** Parts of a change whose last part has not come: printed whole, or not at all when it comes again after a reconnect. */
  #parts: Change[] = [];

  constructor(
    private readonly io: Io,
    private readonly registry: RegistryConnection,
    private readonly namespace: string,
    private readonly options: WatchOptions,
  ) {}

  async run(): Promise<void> {
    const { ending } = this.io;
    while (!ending.aborted) {
      const error = await this.#follow();
      if (ending.aborted) return;
      if (!this.#greeted) throw error;
      await this.#recover(error);
    }
  }

  /** One Watch, until it ends; answers why. */
  async #follow(): Promise<RegistryError> {
    const { namespace, options } = this;
    const filter = { tagsAll: options.tag ?? [], serverIds: options.server ?? [], namePrefix: options.prefix ?? "" };
    const silence = new AbortController();
    const signal = AbortSignal.any([this.io.ending, silence.signal]);
    let timer = setTimeout(() => silence.abort(), SILENCE_MS);
    this.#parts = [];
    try {
      for await (const message of this.registry.watch({ namespace, filter, resumeToken: this.#token }, signal)) {
        clearTimeout(timer);
        timer = setTimeout(() => silence.abort(), SILENCE_MS);
        if (this.#failures > 0) this.#say("connected again");
        this.#failures = 0;
        this.#heard(message);
      }
      return new RegistryError("the stream ended", { code: "UNAVAILABLE" });
    } catch (error) {
      return registryError(error);
    } finally {
      clearTimeout(timer);
    }
  }

  #heard({ message }: WatchResponse): void {
    if (message.case === "snapshot") {
      this.#known += message.value.stubs.length;
      if (!message.value.last) return;
      this.#say(`watching ${grouped(this.#known)} tools`);
      this.#known = 0;
      this.#greeted = true;
      this.#token = message.value.resumeToken;
    } else if (message.case === "change") {
      this.#parts.push(message.value);
      if (message.value.resumeToken === "") return;
      this.#token = message.value.resumeToken;
      for (const part of this.#parts) {
        for (const text of eventLines(part, this.options.json === true)) line(this.io.stdout, text);
      }
      this.#parts = [];
    } else if (message.case === "bookmark") this.#token = message.value.resumeToken;
  }

  async #recover(error: RegistryError): Promise<void> {
    this.#known = 0;
    if (error.reason === "RELIST_REQUIRED" || error.reason === "INVALID_TOKEN") {
      this.#token = "";
      return this.#say("changes were missed, and the list was read again: compare it with `toolcrib ls`");
    }
    if (error.reason === "WATCHER_TOO_SLOW") {
      this.#token = error.metadata["resume_token"] ?? this.#token;
      return;
    }
    if (!error.transient) throw error;
    if (this.#failures === 0) this.#say(`${error.message}; trying again`);
    this.#failures++;
    const ms = backoffMs(this.#failures, Math.random, error.retryAfterMs);
    await delay(ms, undefined, { signal: this.io.ending }).catch(() => undefined);
  }

  #say(text: string): void {
    line(this.io.stderr, text);
  }
}
