/** A wire between two real processes that a test can cut and mend. */
import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { onTestFinished } from "vitest";
import { freePort } from "./ports.js";

export interface Wire {
  readonly port: number;
  /** Connections accepted so far. */
  readonly accepted: number;
  /** Ends every connection and refuses new ones. */
  cut(): Promise<void>;
  mend(): Promise<void>;
  /** New connections lead there: with `cut` and `mend`, as an address does that moves to another machine. */
  aim(toPort: number): void;
  /** From now on takes whatever is sent, on old connections and new ones, and passes nothing on: nobody hears of a loss. */
  swallow(): void;
  /** On the connections of now, passes on what is sent from here on, and none of the answers. */
  deafen(): void;
}

/** Closed when the test ends. */
export async function startWire(toPort: number): Promise<Wire> {
  const sockets = new Set<Socket>();
  const answering = new Set<Socket>();
  let accepted = 0;
  let target = toPort;
  let swallowing = false;
  const join = (near: Socket): void => {
    accepted++;
    const far = connect(target, "127.0.0.1");
    answering.add(far);
    far.on("close", () => answering.delete(far));
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one);
      one.on("error", () => other.destroy());
      one.on("close", () => {
        sockets.delete(one);
        other.destroy();
      });
    }
    if (swallowing) return void near.resume();
    near.pipe(far);
    far.pipe(near);
  };
  const listen = async (port: number): Promise<Server> => {
    const server = createServer(join).listen(port, "127.0.0.1");
    await once(server, "listening");
    return server;
  };
  // It is listened on again after a cut, so nobody may get it meanwhile.
  const port = await freePort();
  let server = await listen(port);
  const cut = async (): Promise<void> => {
    if (!server.listening) return;
    const closed = once(server, "close");
    server.close();
    for (const socket of sockets) socket.destroy();
    await closed;
  };
  onTestFinished(cut);
  return {
    port,
    get accepted() {
      return accepted;
    },
    cut,
    aim(port) {
      target = port;
    },
    async mend() {
      swallowing = false;
      server = await listen(port);
    },
    swallow() {
      swallowing = true;
      for (const socket of sockets) socket.unpipe().resume();
    },
    deafen() {
      for (const socket of answering) socket.unpipe().resume();
    },
  };
}
