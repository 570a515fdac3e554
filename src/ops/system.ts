import { randomBytes } from "node:crypto";
import { networkInterfaces } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import type { Clock, Random } from "../catalogue/ports.js";

/** The machine's clocks. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  async sleep(ms, signal) {
    // An abort only ends the sleep early; whoever aborts knows what it means.
    await delay(Math.max(0, ms), undefined, signal ? { signal } : {}).catch(() => undefined);
  },
};

/** The machine's randomness. */
export const systemRandom: Random = {
  next: () => Math.random(),
  id: () => randomBytes(16).toString("hex"),
};

/** Addresses of the machine's interfaces, as they are now. */
export function machineAddresses(): readonly string[] {
  return Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address));
}
