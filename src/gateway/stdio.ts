/** A gateway for one desktop client, over standard input and output. */
import type { Readable, Writable } from "node:stream";
import { type JSONRPCMessage, Server } from "@modelcontextprotocol/server";
import { serveStdio, StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { assembleParts, type Parts, type PartsOptions } from "./assembly.js";
import type { Face } from "./face.js";
import { explained, lineOf, modernServer } from "./modern.js";
import { SessionGone, type Seat } from "./seat.js";
import { answerSession, type Identity, INSTRUCTIONS, modeOf, type Params, SESSION_REVISIONS } from "./session-methods.js";
import type { Seen, ToolsetChange } from "./toolsets.js";
import { fingerprint, visibleTools } from "./visible.js";
import { FACTS, GATEWAY, type Mode, type Toolset } from "./words.js";

export interface StdioOptions extends PartsOptions {
  readonly mode: Mode | "auto";
  readonly stableClients: readonly string[];
  readonly input: Readable;
  readonly output: Writable;
  /** Ends it. */
  readonly ending: AbortSignal;
}

const BURST_MS = 100;
/** What is known at once is better than waiting; a registry that answers takes a moment. */
const READY_MS = 2_000;

/** Serves until the client closes its end, or `ending` is aborted. Throws TargetError and AccessError. */
export async function runStdioGateway(options: StdioOptions): Promise<void> {
  const { log, version, input, output, ending } = options;
  const parts = assembleParts(options);
  const identity = { name: "toolcrib", version };
  await known(parts, ending);
  const sessions: StdioSession[] = [];
  const transport = new VerbatimTransport(input, output);
  const over = new Promise<void>((resolve) => {
    input.once("end", resolve).once("close", resolve);
    output.once("close", resolve).once("error", () => resolve());
    ending.addEventListener("abort", () => resolve(), { once: true });
    if (ending.aborted) resolve();
  });
  const handle = serveStdio(
    ({ era }) => {
      if (era === "modern") return modernServer(parts.faces["2026-07-28"].stable, GATEWAY, identity);
      const session = new StdioSession(parts, options, identity);
      sessions.push(session);
      return session.server;
    },
    { transport, onerror: (error) => log.debug({ err: String(error) }, "a message on stdio could not be handled") },
  );
  await over;
  await handle.close();
  for (const session of sessions) await session.close();
  await parts.close();
}

/** The one session of a connection of the older eras. Its toolset is made when the client first does something. */
class StdioSession implements Seat {
  readonly caller = GATEWAY;
  readonly clientCapabilities = undefined;
  readonly server: Server;
  #toolset: Promise<Toolset> | undefined;
  #told: string | undefined;
  #due: NodeJS.Timeout | undefined;
  readonly #stop: () => void;

  constructor(
    private readonly parts: Parts,
    private readonly options: StdioOptions,
    { name, version }: Identity,
  ) {
    this.server = new Server(
      { name, title: "Toolcrib", version },
      { capabilities: { tools: { listChanged: true } }, instructions: INSTRUCTIONS.dynamic, supportedProtocolVersions: [...SESSION_REVISIONS] },
    );
    this.server.fallbackRequestHandler = async (request, context) => {
      const params = (request.params ?? {}) as Params;
      const result = await explained(() => answerSession(this.#face, this, request.method, params, lineOf(context)));
      if (request.method === "tools/list") this.#told = await this.#fingerprint();
      return result.kind === "object" ? (result.value as Record<string, unknown>) : { [VERBATIM]: result.text };
    };
    this.#stop = parts.catalogue.onChange(() => {
      if (this.#told !== undefined) this.#due ??= setTimeout(() => void this.#look(), BURST_MS);
    });
  }

  get #mode(): Mode {
    const { mode, stableClients } = this.options;
    return modeOf(mode, null, this.server.getClientVersion()?.name, stableClients);
  }

  get #face(): Face {
    return this.parts.faces.sessions[this.#mode];
  }

  async read(): Promise<Seen> {
    this.#toolset ??= this.parts.toolsets.create(GATEWAY, { [FACTS.mode]: this.#mode });
    // Whoever was refused, or found the registry away, asks again next time.
    this.#toolset.catch(() => (this.#toolset = undefined));
    const { handle } = await this.#toolset;
    const seen = await this.parts.toolsets.read(GATEWAY, handle);
    if (seen) return seen;
    // An idle client comes back to an empty toolset, because stdio cannot tell it to begin anew.
    this.#toolset = undefined;
    return this.read();
  }

  async change(change: (now: Toolset) => ToolsetChange): Promise<Toolset> {
    const { toolset } = await this.read();
    const changed = await this.parts.toolsets.change(GATEWAY, toolset.handle, change);
    if (!changed) throw new SessionGone();
    return changed;
  }

  async close(): Promise<void> {
    this.#stop();
    clearTimeout(this.#due);
    const toolset = await this.#toolset?.catch(() => undefined);
    // Nobody can come back to it; if the registry is away, its idle time ends it.
    if (toolset) await this.parts.toolsets.remove(GATEWAY, toolset.handle).catch(() => undefined);
  }

  async #look(): Promise<void> {
    this.#due = undefined;
    const now = await this.#fingerprint();
    if (now === undefined || now === this.#told || this.#mode === "stable") return;
    this.#told = now;
    await this.server.sendToolListChanged().catch(() => undefined);
  }

  async #fingerprint(): Promise<string | undefined> {
    try {
      const { toolset } = await this.read();
      const { catalogue, map } = this.parts;
      await map.read();
      return fingerprint(visibleTools(toolset, map.always, catalogue), map.mark, catalogue);
    } catch {
      return undefined;
    }
  }
}

/** The text of a result that is sent as it is. */
const VERBATIM = Symbol("verbatim");

/** The SDK's transport, but for results whose very bytes matter. */
class VerbatimTransport extends StdioServerTransport {
  readonly #output: Writable;

  constructor(input: Readable, output: Writable) {
    super(input, output);
    this.#output = output;
  }

  override async send(message: JSONRPCMessage): Promise<void> {
    const text = "result" in message ? (message.result as { [VERBATIM]?: string })[VERBATIM] : undefined;
    if (text === undefined) return super.send(message);
    const { id } = message as { id: string | number };
    const line = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${text.replace(/[\r\n]/g, " ")}}\n`;
    await new Promise<void>((resolve) => this.#output.write(line, () => resolve()));
  }
}

/** Until there is a catalogue, or it is clear that waiting does not help. */
function known({ notReady, catalogue }: Parts, ending: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const over = setTimeout(done, READY_MS);
    const stop = catalogue.onChange(done);
    function done(): void {
      clearTimeout(over);
      stop();
      resolve();
    }
    ending.addEventListener("abort", done, { once: true });
    if (notReady() === "" || ending.aborted) done();
  });
}
