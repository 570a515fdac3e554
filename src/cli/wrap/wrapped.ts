import type { ChildEnd, ChildHandlers, ChildPlace } from "./child.js";
import { Child } from "./child.js";
import type { Eras } from "./era.js";
import { findEras, START_TIMEOUT_MS } from "./era.js";
import { Relay } from "./http/relay.js";
import { Link } from "./link.js";
import { listTools, subscribeToList } from "./listing.js";

export interface WrapSettings extends ChildPlace {
  readonly command: string;
  readonly args: readonly string[];
  /** 0 takes a free one. */
  readonly port: number;
  /** A host name under which a proxy on this machine passes requests on. */
  readonly alsoAllowed?: string | undefined;
  readonly client: { readonly name: string; readonly version: string };
  /** How long the child may take to its first answer, ms. */
  readonly startTimeoutMs?: number | undefined;
  /** Ends a start that is still under way. */
  readonly ending: AbortSignal;
  readonly onToolsChanged: () => void;
  /** One sentence about something odd that the child did. */
  readonly onOddity: (text: string) => void;
}

/** The child ended, or could not be understood, before it could be served. */
export class WrapError extends Error {
  constructor(
    message: string,
    readonly exitCode: number,
  ) {
    super(message);
    this.name = "WrapError";
  }
}

/** A stdio MCP server, running and served over HTTP. */
export class Wrapped {
  private constructor(
    /** Where it is served. */
    readonly url: string,
    readonly ended: Promise<ChildEnd>,
    private readonly child: Child,
    private readonly link: Link,
    private readonly eras: Eras,
    private readonly relay: Relay,
  ) {}

  /** Rejects with SpawnError or WrapError, with the child ended. */
  static async start(settings: WrapSettings): Promise<Wrapped> {
    let relay: Relay | undefined;
    const link: Link = new Link(
      (message) => child.send(message),
      (method, message) => {
        relay?.broadcast(message);
        if (method === "notifications/tools/list_changed") settings.onToolsChanged();
      },
      (noise) =>
        settings.onOddity(`the server printed something that is no message: ${noise.toString("utf8", 0, 200)}`),
    );
    const handlers: ChildHandlers = {
      onLine: (bytes) => link.receive(bytes),
      onOutputEnd: () => void child.stop(),
      onOverflow(bytes) {
        settings.onOddity(`the server sent a line of more than ${bytes} bytes: it is ended`);
        void child.stop();
      },
    };
    const child: Child = await Child.spawn(settings.command, settings.args, handlers, settings);
    void child.ended.then((end) => link.end(`the server ${end.how}`));
    const giveUp = (): void => void child.stop();
    settings.ending.addEventListener("abort", giveUp, { once: true });
    try {
      const eras = await understand(link, child, settings);
      relay = new Relay(link, eras, settings);
      const url = await relay.listen();
      subscribeToList(link, eras, settings.onToolsChanged);
      return new Wrapped(url, child.ended, child, link, eras, relay);
    } catch (error) {
      await child.stop();
      throw error;
    } finally {
      settings.ending.removeEventListener("abort", giveUp);
    }
  }

  /** The definitions as the child sends them. */
  listTools(): Promise<Buffer[]> {
    return listTools(this.link, this.eras);
  }

  /** Ends the HTTP side and the child with all of its processes. */
  async stop(): Promise<void> {
    await Promise.all([this.relay.close(), this.child.stop()]);
  }
}

async function understand(link: Link, child: Child, settings: WrapSettings): Promise<Eras> {
  try {
    const { client, startTimeoutMs = START_TIMEOUT_MS, onOddity } = settings;
    return await findEras(link, client, { startTimeoutMs, onSilence: onOddity });
  } catch (error) {
    // A child that ended answers nothing, and how it ended is the better explanation.
    const end = await Promise.race([child.ended, Promise.resolve(undefined)]);
    if (end) throw new WrapError(`${settings.command} ${end.how} before it answered as an MCP server`, end.code || 1);
    throw new WrapError(`${settings.command} cannot be wrapped: ${(error as Error).message}`, 1);
  }
}
