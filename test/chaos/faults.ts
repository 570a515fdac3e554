/** How each planned fault is done to the world; each answers when the world is left alone again. */
import type { FaultKind, PlannedFault } from "./plan.js";
import { sleep } from "./redis-side.js";
import type { Unit, World } from "./world.js";
import type { WireMode } from "./wire.js";

type Deed = (world: World, fault: PlannedFault) => Promise<void>;

const unitOf = (world: World, { target }: PlannedFault): Unit => world.units[target % world.units.length] as Unit;

async function lossy(world: World, deed: () => Promise<void>): Promise<void> {
  const over = world.tape.fault("store-lost");
  try {
    await deed();
  } finally {
    over();
  }
}

const wire =
  (modeOf: (fault: PlannedFault) => WireMode): Deed =>
  async (world, fault) => {
    const { name, line } = unitOf(world, fault);
    const mode = modeOf(fault);
    // A slow store is not away.
    const over = mode.kind === "slow" ? () => undefined : world.tape.fault("store-away", name);
    line.set(mode);
    await sleep(fault.ms);
    over();
    line.set({ kind: "open" });
  };

export const DEEDS: Record<FaultKind, Deed> = {
  async "replica-kill"(world, fault) {
    const { name, process } = unitOf(world, fault);
    const over = world.tape.fault("replica-down", name);
    await process.kill();
    await sleep(fault.ms);
    await process.start();
    over();
  },
  async "replica-freeze"(world, fault) {
    const { name, process } = unitOf(world, fault);
    const over = world.tape.fault("replica-down", name);
    process.freeze();
    await sleep(fault.ms);
    process.thaw();
    over();
  },
  async "replica-roll"(world) {
    for (const { name, process } of world.units) {
      const over = world.tape.fault("replica-down", name);
      const code = await process.stop();
      if (code !== 0) throw new Error(`replica ${name} ended with ${String(code)} on SIGTERM`);
      await process.start();
      over();
    }
  },
  "redis-failover": (world) => lossy(world, async () => world.redis.failover?.()),
  "redis-kill": (world, { target }) => lossy(world, () => world.redis.kill(target)),
  "redis-freeze": (world, { target, ms }) => lossy(world, () => world.redis.freeze(target, ms)),
  flush: (world) => lossy(world, () => world.redis.flush()),
  // Sentinels take a primary that answers nobody for one that is down.
  "client-pause": (world, { ms }) => lossy(world, () => world.redis.pauseClients(ms)),
  "wire-cut": wire(() => ({ kind: "cut" })),
  "wire-slow": wire(({ amount }) => ({ kind: "slow", latencyMs: amount, jitterMs: amount / 2 })),
  "wire-hole": wire(() => ({ kind: "hole" })),
  "registrar-kill": (world, { target, ms }) => world.restartRegistrars(target, ms),
  async "servers-down"(world, { ms }) {
    for (const child of world.registrars) child.send({ kind: "servers-down", ms });
    await sleep(ms);
  },
  async "watchers-drop"(world) {
    for (const child of world.watchers) child.send({ kind: "drop" });
  },
  async "clock-jump"(world, fault) {
    const { process } = unitOf(world, fault);
    process.moveClock(fault.amount);
    await sleep(fault.ms);
    process.moveClock(0);
    // The library looks at its file once a second.
    await sleep(1_100);
  },
  async "slot-move"(world, { target }) {
    await world.redis.moveSlot?.(target);
  },
};
