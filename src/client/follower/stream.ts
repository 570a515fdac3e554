import type { WatchResponse } from "../../gen/toolcrib/v1/registry_service_pb.js";
import { RegistryError, registryError } from "../registry-error.js";
import type { Target } from "../target.js";
import type { Timers } from "../timers.js";
import { Alarm } from "./alarm.js";
import type { WatchSource } from "./source.js";

/** Until a registry takes a stream up; its first message may come later. */
const OPEN_MS = 10_000;

/** How a stream ended. */
export interface StreamEnd {
  readonly why: "disconnected" | "silent";
  readonly error: RegistryError;
  /** Whether it said anything. */
  readonly heard: boolean;
}

export interface StreamParts {
  readonly source: WatchSource;
  readonly target: Target;
  readonly request: Parameters<WatchSource>[1];
  readonly timers: Timers;
  readonly silenceMs: number;
  /** What it throws ends the stream. */
  readonly take: (message: WatchResponse) => void;
  /** Hears of the silence before the stream is given up. */
  readonly onSilent: (error: RegistryError) => void;
}

/** Reads one stream until it ends, says nothing for too long, or `ending` is aborted. */
export async function readStream(parts: StreamParts, ending: AbortSignal): Promise<StreamEnd> {
  const { source, target, request, timers, silenceMs, take } = parts;
  const cut = new AbortController();
  const end = (): void => cut.abort();
  ending.addEventListener("abort", end, { once: true });
  let silent: RegistryError | undefined;
  const silence = new Alarm(timers, () => {
    silent = new RegistryError(`nothing is heard from the registry at ${target.address}`, {
      code: "DEADLINE_EXCEEDED",
    });
    parts.onSilent(silent);
    cut.abort();
  });
  let heard = false;
  const ended = (error: RegistryError): StreamEnd =>
    silent ? { why: "silent", error: silent, heard } : { why: "disconnected", error, heard };
  try {
    silence.set(Math.min(OPEN_MS, silenceMs));
    for await (const message of source(target, request, cut.signal, () => silence.set(silenceMs))) {
      if (cut.signal.aborted) break;
      heard = true;
      silence.set(silenceMs);
      take(message);
    }
    return ended(new RegistryError(`the registry at ${target.address} ended the stream`, { code: "UNAVAILABLE" }));
  } catch (error) {
    return ended(registryError(error));
  } finally {
    silence.off();
    ending.removeEventListener("abort", end);
  }
}
