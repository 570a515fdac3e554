/** The MCP endpoint of one server: it lists its tools, and fails for a while when it is told to. */
import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { ServerSpec } from "./messages.js";
import type { Tape } from "./tape.js";

type Illness = "refuses" | "hangs";

/** Of the fixtures, which are JavaScript. */
interface WireServer {
  readonly http: Server;
  log: unknown[];
  notifyChanged(): void;
}

export class Endpoint {
  #tools: readonly string[] = [];
  #illness: Illness | undefined;
  #well: (() => void) | undefined;
  #server: WireServer | undefined;
  #url = "";

  private constructor(
    private readonly tape: Tape,
    private readonly spec: ServerSpec,
  ) {}

  static async open(tape: Tape, spec: ServerSpec): Promise<Endpoint> {
    const endpoint = new Endpoint(tape, spec);
    const script = new URL("../fixtures/servers/wire.mjs", import.meta.url).href;
    const { WireServer } = (await import(script)) as { WireServer: new (options: object) => WireServer };
    const server = new WireServer({
      page: () => ({ tools: endpoint.#tools }),
      intercept: (_request: unknown, response: { writeHead(status: number): { end(): void } }) => {
        // The fixture remembers all requests, which is too much for a long run.
        server.log = [];
        if (endpoint.#illness === "refuses") response.writeHead(503).end();
        return endpoint.#illness !== undefined;
      },
    });
    server.http.listen(0, "127.0.0.1");
    await once(server.http, "listening");
    endpoint.#server = server;
    endpoint.#url = `http://127.0.0.1:${(server.http.address() as AddressInfo).port}/mcp`;
    endpoint.#answering();
    return endpoint;
  }

  get url(): string {
    return this.#url;
  }

  serve(tools: readonly string[]): void {
    this.#tools = tools;
    this.#server?.notifyChanged();
  }

  fail(how: Illness, ms: number): void {
    if (this.#illness) return;
    this.#well?.();
    this.#illness = how;
    setTimeout(() => {
      this.#illness = undefined;
      this.#answering();
    }, ms);
  }

  #answering(): void {
    const { namespace, serverId } = this.spec;
    this.#well = this.tape.span((from, to) => ({ kind: "answering", namespace, serverId, from, to }));
  }
}
