/** Child processes of a run, and the tapes that they leave. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { FromChild, RegistrarOrders, ToChild, WatcherOrders } from "./messages.js";
import type { TapeFile } from "./merge.js";
import { monotonicMs } from "./tape.js";

export class Child {
  readonly #process: ChildProcess;
  readonly #told: FromChild[] = [];
  readonly tape: { -readonly [K in keyof TapeFile]: TapeFile[K] };

  private constructor(
    child: ChildProcess,
    tape: string,
    private readonly hear: (message: FromChild) => void,
  ) {
    this.#process = child;
    this.tape = { path: tape };
    child.on("message", (message: FromChild) => {
      this.#told.push(message);
      if (message.kind === "belief") this.#told.pop();
      this.hear(message);
    });
  }

  /** Answers when it has begun. */
  static async start(orders: RegistrarOrders | WatcherOrders, folder: string, hear: (message: FromChild) => void): Promise<Child> {
    const log = openSync(join(folder, `${orders.kind}-${orders.index}.log`), "a");
    const script = fileURLToPath(new URL(`./${orders.kind}.js`, import.meta.url));
    const child = fork(script, [], { stdio: ["ignore", log, log, "ipc"], execArgv: ["--enable-source-maps", "--max-old-space-size=512"] });
    closeSync(log);
    const one = new Child(child, orders.tape, hear);
    one.send({ kind: "begin", orders });
    await one.told("ready");
    return one;
  }

  get died(): boolean {
    return this.tape.killedMs === undefined && (this.#process.exitCode !== null || this.#process.signalCode !== null);
  }

  send(message: ToChild): void {
    if (this.#process.connected) this.#process.send(message);
  }

  /** Waits until it says this. */
  async told<K extends FromChild["kind"]>(kind: K, ms = 60_000): Promise<Extract<FromChild, { kind: K }>> {
    const until = performance.now() + ms;
    for (;;) {
      const found = this.#told.find((m) => m.kind === kind);
      if (found) return found as Extract<FromChild, { kind: K }>;
      if (this.#process.exitCode !== null) throw new Error(`a child ended before it said ${kind}; its tape is ${this.tape.path}`);
      if (performance.now() > until) throw new Error(`a child did not say ${kind} within ${ms} ms; its tape is ${this.tape.path}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async kill(): Promise<void> {
    this.tape.killedMs = monotonicMs();
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const gone = once(this.#process, "exit");
    this.#process.kill("SIGKILL");
    await gone;
  }

  async finish(): Promise<void> {
    if (this.tape.killedMs !== undefined) return;
    this.send({ kind: "finish" });
    await this.told("finished", 20_000);
  }
}
