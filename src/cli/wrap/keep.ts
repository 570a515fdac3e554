import type { RegistrationEvent } from "../../client/events.js";
import { describeRejected } from "../../client/events.js";
import { keepRegistered } from "../../client/keep.js";
import { declareTools } from "../../client/offer.js";
import type { Registration } from "../../client/registration.js";
import type { Target } from "../../client/target.js";
import { explain } from "../failure.js";
import { grouped } from "../table.js";
import type { ChildEnd } from "./child.js";
import type { WrapSettings } from "./wrapped.js";
import { Wrapped } from "./wrapped.js";

export interface KeepSettings extends Omit<WrapSettings, "onToolsChanged" | "onOddity"> {
  readonly target: Target;
  readonly serverId: string;
  readonly title: string;
  readonly tags: readonly string[];
  readonly namespace: string;
  /** The URL at which others reach the endpoint, where a proxy passes it on. */
  readonly advertise?: string | undefined;
  /** The registry's named credential for that URL. */
  readonly credential?: string | undefined;
  /** Hears sentences for the user. */
  readonly say: (text: string) => void;
  readonly onEvent?: (event: RegistrationEvent) => void;
}

/** A wrapped server that is kept registered while it runs. */
export class KeptServer {
  #closing: Promise<void> | undefined;

  private constructor(
    readonly ended: Promise<ChildEnd>,
    private readonly wrapped: Wrapped,
    private readonly registration: Registration,
  ) {}

  /** Rejects with SpawnError or WrapError; whether the registry is there does not matter. */
  static async start(settings: KeepSettings): Promise<KeptServer> {
    const { target, serverId, say, onEvent } = settings;
    let registration: Registration | undefined;
    const onToolsChanged = (): void => registration?.changed();
    const wrapped = await Wrapped.start({ ...settings, onToolsChanged, onOddity: say });
    say(`${serverId} is served at ${wrapped.url}`);
    const narrate = narrator(serverId, target, say);
    registration = keepRegistered(target, async () => declareTools(await wrapped.listTools(), "inline"), {
      serverId,
      title: settings.title,
      tags: settings.tags,
      namespace: settings.namespace,
      endpoint: endpointFor(target, wrapped.url, settings.advertise),
      ...(settings.credential !== undefined && { credential: settings.credential }),
      // Here the order of leaving is ours: the registry first, then the server.
      deregisterOnExit: false,
      onEvent(event) {
        narrate(event);
        onEvent?.(event);
      },
    });
    const kept = new KeptServer(wrapped.ended, wrapped, registration);
    void wrapped.ended.then((end) => {
      if (!kept.#closing) say(`the server ${end.how}`);
    });
    return kept;
  }

  /** Leaves the registry, then ends the server. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.registration.close();
    await this.wrapped.stop();
  }
}

const OWN_SECRETS = ["TOOLCRIB_TOKEN", "TOOLCRIB_TOKEN_FILE", "TOOLCRIB_CERT", "TOOLCRIB_KEY"];

/** What a server inherits of our variables: all but those by which the registry knows us. */
export function strangersEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !OWN_SECRETS.includes(name)));
}

/** What the registry may dial: loopback means this machine to it only if it runs here. Empty: the definitions suffice. */
export function endpointFor(target: Target, url: string, advertised: string | undefined): string {
  return advertised ?? (target.loopback ? url : "");
}

/** Says what changes, once: a registry that stays away is not worth a line a second. */
function narrator(id: string, target: Target, say: (text: string) => void): (event: RegistrationEvent) => void {
  let away = false;
  let listed = -1;
  return (event) => {
    switch (event.type) {
      case "registered":
        if (away || event.listed !== listed) {
          const tools = event.listed === 1 ? `1 tool of ${id} is` : `${grouped(event.listed)} tools of ${id} are`;
          say(`${tools} registered at ${target.address}`);
        }
        if (event.rejected.length > 0) say(describeRejected(id, event.rejected));
        away = false;
        listed = event.listed;
        return;
      case "retrying":
        if (!away) say(`${event.error.message}; trying again until it works`);
        away = true;
        return;
      case "back":
        if (away) say(`${target.address} answers again; ${id} is still registered`);
        away = false;
        return;
      case "refused":
        for (const text of explain(event.error).lines) say(text);
        say(
          `${id} stays served here; the registry is asked again when the tools change, and where rights decide every 30 s`,
        );
        return;
      case "superseded":
        return say("a newer instance registered other tools; its tools are the server's now");
      case "deregistered":
        return say(`${id} was deregistered at the registry: it stays served here, and out of the registry`);
      case "closed":
        // What was never registered leaves nothing behind.
        if (!event.removed && listed >= 0)
          say("the registry did not hear that the server left; its lease ends by itself");
        return;
      case "again":
    }
  };
}
