import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { ProbeSettingsSchema } from "../gen/toolcrib/v1/server_pb.js";

/** How the registry looks after a server; what is left out is as the registry is set. */
export interface ProbeOptions {
  /** Time between two probes of a healthy server in milliseconds, 2 s to 1 h. */
  readonly intervalMs?: number | undefined;
  /** How long a probe may take in milliseconds, 100 ms to 30 s. */
  readonly timeoutMs?: number | undefined;
  /** Failures in a row until calls fail fast, 1 to 10. */
  readonly fall?: number | undefined;
  /** Successes in a row until they do not any more, 1 to 10. */
  readonly rise?: number | undefined;
  /** Never probed: it counts as available for as long as it is registered. */
  readonly off?: boolean | undefined;
}

export function probeSettings(options: ProbeOptions): MessageInitShape<typeof ProbeSettingsSchema> {
  const { intervalMs, timeoutMs, fall = 0, rise = 0, off = false } = options;
  return {
    ...(intervalMs === undefined ? {} : { interval: durationFromMs(intervalMs) }),
    ...(timeoutMs === undefined ? {} : { timeout: durationFromMs(timeoutMs) }),
    fall,
    rise,
    off,
  };
}
