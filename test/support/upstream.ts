/** The real upstream, on the real clock. */
import { onTestFinished } from "vitest";
import type { Clock, Logger } from "../../src/catalogue/ports.js";
import { UpstreamError } from "../../src/catalogue/upstream-port.js";
import type { EgressPolicy } from "../../src/domain/admission/egress.js";
import type { ClosableUpstream, UpstreamOptions } from "../../src/upstream/upstream.js";
import { createUpstream } from "../../src/upstream/upstream.js";

export const realClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const end = (): void => {
        clearTimeout(timer);
        // A signal may live through thousands of sleeps.
        signal?.removeEventListener("abort", end);
        resolve();
      };
      const timer = setTimeout(end, ms);
      signal?.addEventListener("abort", end);
    }),
};

export const silentLogger: Logger = { debug() {}, info() {}, warn() {}, error() {} };

/** As of a registry that listens on loopback only and lists nothing. */
export const localPolicy: EgressPolicy = {
  inside: "open",
  allow: { networks: [], names: [] },
  own: () => [],
  machine: () => [],
};

/** Closed when the test ends. */
export function startUpstream(
  clock: Clock = realClock,
  more: Partial<Pick<UpstreamOptions, "policy" | "resolve" | "credentials">> = {},
): ClosableUpstream {
  const upstream = createUpstream({ clock, logger: silentLogger, version: "0.0.0", policy: localPolicy, ...more });
  onTestFinished(() => upstream.close());
  return upstream;
}

/** A deadline far beyond what a working server needs. */
export function soon(): AbortSignal {
  return AbortSignal.timeout(20_000);
}

export async function failureOf(work: Promise<unknown>): Promise<UpstreamError> {
  try {
    await work;
  } catch (error) {
    if (error instanceof UpstreamError) return error;
    throw error;
  }
  throw new Error("it should have failed");
}

/** Polls until the condition holds; fails with its last value after `ms`, 20 s if unsaid. */
export async function eventually<T>(look: () => T | Promise<T>, holds: (value: T) => boolean, ms = 20_000): Promise<T> {
  const until = performance.now() + ms;
  for (;;) {
    const value = await look();
    if (holds(value)) return value;
    if (performance.now() > until) throw new Error(`never came true; last seen: ${JSON.stringify(value)}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
