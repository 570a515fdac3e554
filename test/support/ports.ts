import { once } from "node:events";
import { createServer } from "node:net";

/** Below the range that systems take ports from by themselves: no outgoing connection of another test gets it meanwhile. */
const LOWEST = 12_000;
const HIGHEST = 31_999;

/** A port of this machine that nobody listens on now, drawn by chance so that tests that run side by side do not meet. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = LOWEST + Math.floor(Math.random() * (HIGHEST - LOWEST + 1));
    const server = createServer();
    const listens = await new Promise<boolean>((resolve) => {
      server.once("error", () => resolve(false));
      server.listen(port, "127.0.0.1", () => resolve(true));
    });
    if (!listens) continue;
    server.close();
    await once(server, "close");
    return port;
  }
}
