import { setTimeout as delay } from "node:timers/promises";
import type { RegistryConnection } from "../../client/connection.js";
import type { RegistrationEvent } from "../../client/events.js";
import { RegistryError } from "../../client/registry-error.js";
import type { RegisterResponse } from "../../gen/toolcrib/v1/registry_service_pb.js";
import { Transport } from "../../gen/toolcrib/v1/server_pb.js";
import { explain } from "../failure.js";
import type { Io } from "../io.js";
import { line } from "../io.js";
import type { StandingServer } from "../register.js";
import { registerStanding } from "../register.js";
import { notes as serverNotes } from "../servers.js";
import { SpawnError } from "../wrap/child.js";
import { KeptServer, strangersEnvironment } from "../wrap/keep.js";
import { WrapError } from "../wrap/wrapped.js";
import type { ConsentContext } from "./consent.js";
import { decide } from "./consent.js";
import type { Outcome } from "./outcome.js";
import type { RegisterTask, WrapTask } from "./plan.js";

export async function registerTask(
  registry: RegistryConnection,
  namespace: string,
  task: RegisterTask,
  consent: ConsentContext,
): Promise<Outcome> {
  const { name, serverId, url } = task;
  const decision = await decide(task, consent);
  const notes = [...task.notes, ...decision.notes];
  try {
    const server: StandingServer = {
      serverId,
      endpoint: url,
      title: name === serverId ? "" : name,
      tags: [],
      transport: task.sse ? Transport.HTTP_SSE : Transport.STREAMABLE_HTTP,
      ...(decision.credential === "" ? {} : { credential: decision.credential }),
    };
    const answer = await registerPatiently(registry, namespace, server, decision.written ? RELOAD_MS : 0);
    if (answer.pending) {
      return {
        name,
        serverId,
        result: "pending",
        notes: [...notes, "does not answer yet: it is listed when it comes up"],
      };
    }
    const read = await registry.getServer({ namespace, serverId, minRevision: answer.revision });
    const told = read.server ? serverNotes(read.server, Date.now()).map((text) => text.trim()) : [];
    return { name, serverId, result: "registered", tools: read.server?.toolCount ?? 0, notes: [...notes, ...told] };
  } catch (error) {
    return { name, serverId, result: "failed", notes: [...notes, ...explain(error).lines.map((text) => text.trim())] };
  }
}

/** Within this time a registry reads a credentials file that changed. */
const RELOAD_MS = 5_000;
const AGAIN_MS = 250;

/** A registry may not know yet a credential that was written just now. */
async function registerPatiently(
  registry: RegistryConnection,
  namespace: string,
  server: StandingServer,
  patienceMs: number,
): Promise<RegisterResponse> {
  const until = performance.now() + patienceMs;
  for (;;) {
    try {
      return await registerStanding(registry, namespace, server);
    } catch (error) {
      const unknown = error instanceof RegistryError && String(error.reason) === "UNKNOWN_CREDENTIAL";
      if (!unknown || performance.now() >= until) throw error;
      await delay(AGAIN_MS);
    }
  }
}

export interface WrapContext {
  readonly io: Io;
  readonly target: RegistryConnection["target"];
  readonly namespace: string;
  readonly version: string;
}

/** A wrapped server that runs, or why it does not. */
export interface Started {
  readonly outcome: Outcome;
  readonly kept?: KeptServer;
}

export async function wrapTask(task: WrapTask, { io, target, namespace, version }: WrapContext): Promise<Started> {
  const { name, serverId } = task;
  const first = firstOutcome();
  try {
    const kept = await KeptServer.start({
      target,
      serverId,
      title: name === serverId ? "" : name,
      tags: [],
      namespace,
      command: task.command,
      args: task.args,
      env: { ...strangersEnvironment(io.env), ...task.env },
      cwd: task.cwd,
      port: 0,
      client: { name: "toolcrib-import", version },
      ending: io.ending,
      say: (text) => line(io.stderr, `${serverId}: ${text}`),
      onEvent: first.hear,
    });
    const ended = kept.ended.then((end) => `the server ${end.how}`);
    const event = await Promise.race([first.event, ended]);
    return { kept, outcome: outcomeOf(task, event) };
  } catch (error) {
    if (!(error instanceof WrapError || error instanceof SpawnError)) throw error;
    return { outcome: { name, serverId, result: "failed", notes: [...task.notes, error.message] } };
  }
}

function outcomeOf({ name, serverId, notes }: WrapTask, event: RegistrationEvent | string): Outcome {
  if (typeof event === "string") return { name, serverId, result: "failed", notes: [...notes, event] };
  switch (event.type) {
    case "registered":
      return { name, serverId, result: "wrapped", tools: event.listed, notes };
    case "retrying":
      return {
        name,
        serverId,
        result: "pending",
        notes: [...notes, `${event.error.message}; trying again until it works`],
      };
    case "refused":
      return {
        name,
        serverId,
        result: "failed",
        notes: [...notes, ...explain(event.error).lines.map((text) => text.trim())],
      };
    default:
      return { name, serverId, result: "pending", notes };
  }
}

/** The first thing that a registration tells. */
function firstOutcome() {
  let hear: (event: RegistrationEvent) => void = () => undefined;
  const event = new Promise<RegistrationEvent>((resolve) => {
    hear = resolve;
  });
  return { event, hear };
}
