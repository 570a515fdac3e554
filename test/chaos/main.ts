/** One chaos run: the plan, the faults, the quiet after them, and what the validators say of it all. */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Facts, type History, type Violation } from "../validators/history.js";
import { VALIDATORS } from "../validators/validators.js";
import { DEEDS } from "./faults.js";
import { figuresOf, median } from "./figures.js";
import { merged } from "./merge.js";
import { LEASE_MS } from "./messages.js";
import { type ChaosOptions, readOptions, USAGE } from "./options.js";
import { describe, type PlannedFault, planOf } from "./plan.js";
import { sleep } from "./redis-side.js";
import { clockLibrary } from "./replica.js";
import { monotonicMs } from "./tape.js";
import { World } from "./world.js";

/** A lost catalogue is waited for this long at most: the rest of each old lease and one more. */
const HEAL_MS = LEASE_MS * 2 + LEASE_MS / 3 + 5_000;
const QUIET_MS = HEAL_MS + 3_000;

interface DoneFault {
  readonly kind: string;
  readonly atMs: number;
  readonly tookMs: number;
  /** From its end until every replica took a write, was current and listed what is registered; null when another fault came before. */
  healMs: number | null;
}

/** Answers the exit code. */
export async function main(argv: readonly string[], root: string): Promise<number> {
  let options: ChaosOptions;
  try {
    options = readOptions(argv);
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${USAGE}`);
    return 2;
  }
  const clock = clockLibrary();
  const plan = planOf({ ...options, clocks: clock !== undefined });
  console.log(`chaos: seed ${options.seed}, ${options.minutes} min, ${options.topology}, ${options.replicas} replicas, ${options.servers} servers, ${options.watchers} watchers`);
  if (clock === undefined) console.log("no clock jumps: libfaketime is not installed (Debian: apt-get install libfaketime)");
  console.log(`plan:\n${plan.map(describe).join("\n")}`);
  const world = new World(options, root, clock);
  const leave = async (): Promise<void> => {
    console.log("\nstopping everything …");
    await world.stop();
    if (!options.keep) rmSync(world.folder, { recursive: true, force: true });
    process.exit(130);
  };
  process.once("SIGINT", () => void leave());
  process.once("SIGTERM", () => void leave());
  try {
    return await run(world, options, plan, clock !== undefined);
  } catch (error) {
    console.error(error);
    console.error(`the run itself failed, seed ${options.seed}; logs and tapes are in ${world.folder}`);
    return 1;
  } finally {
    await world.stop();
  }
}

async function run(world: World, options: ChaosOptions, plan: readonly PlannedFault[], clocks: boolean): Promise<number> {
  const began = performance.now();
  await world.start();
  await whole(world, 0, 60_000);
  console.log(`started in ${seconds(performance.now() - began)}; history and logs in ${world.folder}`);
  const done = await inflict(world, plan, options.minutes * 60_000);
  world.calm();
  console.log(`quiet for ${seconds(QUIET_MS)} …`);
  const quietFrom = performance.now();
  await sleep(QUIET_MS);
  const last = await stillAiling(world, quietFrom);
  const agreed = await world.readAll(10_000);
  const { followers, differences } = await world.compareFollowers();
  const { casualties } = world;
  await world.finish();
  const endMs = monotonicMs();
  const found: Violation[] = [
    ...differences.map((text) => ({ promise: "P2", text: `P2 no gap: ${text}` })),
    ...(last === undefined ? [] : [{ promise: "P7", text: `P7 heal: after ${seconds(QUIET_MS)} of quiet, ${last}` }]),
    ...(agreed ? [] : [{ promise: "P7", text: "P7 heal: the replicas do not come to one revision in quiet" }]),
    ...casualties.map((text) => ({ promise: "process", text })),
  ];
  await world.stop();
  const history = await merged(world.tapes, factsOf(), endMs);
  const judged = judge(history);
  found.push(...judged.flatMap((j) => j.violations), ...internal(history));
  return report(world, options, { clocks, done, followers, history, judged, found });
}

function factsOf(): Facts {
  // Redis acknowledges before its replica has it, so every run that has a failover may lose something; the tape marks when.
  return { oneHistory: false, healMs: HEAL_MS, noticeMs: 8_000, answerMs: 30_000, recoverMs: 60_000, window: 10_000 };
}

/** Until the world is whole again, or `ms` have passed; answers how long that took. */
async function whole(world: World, since: number, ms: number, given: () => boolean = () => false): Promise<number | undefined> {
  const from = performance.now();
  while (!given()) {
    const why = await world.ailing(since);
    if (why === undefined) return performance.now() - from;
    if (performance.now() - from > ms) throw new Error(`not whole within ${seconds(ms)}: ${why}`);
    await sleep(200);
  }
  return undefined;
}

/** A read that a busy machine lets time out is no sickness. */
async function stillAiling(world: World, since: number): Promise<string | undefined> {
  let why = await world.ailing(since);
  for (let i = 0; i < 10 && why !== undefined; i++) {
    await sleep(500);
    why = await world.ailing(since);
  }
  return why;
}

async function inflict(world: World, plan: readonly PlannedFault[], totalMs: number): Promise<DoneFault[]> {
  const done: DoneFault[] = [];
  const began = performance.now();
  const passed = (): number => performance.now() - began;
  let watching: Promise<unknown> = Promise.resolve();
  let current = 0;
  for (const [i, fault] of plan.entries()) {
    await sleep(Math.max(0, fault.atMs - passed()));
    if (passed() > totalMs) break;
    current = i;
    await watching;
    const from = passed();
    console.log(`${seconds(from).padStart(9)}  ${describe(fault).slice(11)}`);
    await DEEDS[fault.kind](world, fault);
    const one: DoneFault = { kind: fault.kind, atMs: Math.round(from), tookMs: Math.round(passed() - from), healMs: null };
    done.push(one);
    watching = whole(world, performance.now(), Number.POSITIVE_INFINITY, () => current !== i).then((ms) => {
      if (ms === undefined) return;
      one.healMs = Math.round(ms);
      console.log(`${seconds(passed()).padStart(9)}    whole again ${seconds(ms)} after ${fault.kind}`);
    });
  }
  await sleep(Math.max(0, totalMs - passed()));
  current = -1;
  await watching;
  return done;
}

/** INTERNAL is for bugs alone, whatever is done to the world. */
function internal({ items }: History): Violation[] {
  return items.flatMap((item) => {
    if (!("outcome" in item) || item.outcome.kind !== "error" || item.outcome.reason !== "INTERNAL") return [];
    return [{ promise: "errors", text: `errors: ${item.kind} at replica ${item.replica} failed with INTERNAL: ${item.outcome.message}` }];
  });
}

interface Judged {
  readonly promise: string;
  readonly ms: number;
  readonly violations: readonly Violation[];
}

function judge(history: History): Judged[] {
  return Object.entries(VALIDATORS).map(([promise, validator]) => {
    const from = performance.now();
    const violations = validator(history);
    return { promise, ms: Math.round(performance.now() - from), violations };
  });
}

interface Results {
  readonly clocks: boolean;
  readonly done: readonly DoneFault[];
  readonly followers: number;
  readonly history: History;
  readonly judged: readonly Judged[];
  readonly found: readonly Violation[];
}

const SHOWN = 20;

/** How long it took until all was whole, where that was before the next fault. */
function healing({ healed, healP50Ms, healMaxMs }: { healed: number; healP50Ms: number; healMaxMs: number }): string[] {
  if (healed === 0) return ["the next fault came first", "", ""];
  return [`healed ${healed}`, `p50 ${seconds(healP50Ms)}`, `max ${seconds(healMaxMs)}`];
}

function report(world: World, options: ChaosOptions, { clocks, done, followers, history, judged, found }: Results): number {
  const heals = done.flatMap((d) => d.healMs ?? []);
  const kinds = [...new Set(done.map((d) => d.kind))].sort();
  const { seed, minutes, topology, servers, watchers, replicas } = options;
  const figures = {
    ...{ seed, minutes, topology, servers, watchers, replicas, followers, clockJumps: clocks },
    faults: kinds.map((kind) => {
      const mine = done.filter((d) => d.kind === kind);
      const healed = mine.flatMap((d) => d.healMs ?? []);
      return { kind, count: mine.length, healed: healed.length, healP50Ms: median(healed), healMaxMs: Math.max(0, ...healed) };
    }),
    heal: { measured: heals.length, overtaken: done.length - heals.length, p50Ms: median(heals), maxMs: Math.max(0, ...heals) },
    writesAway: { longestAtOneReplicaMs: Math.round(world.silence.oneMs), longestEverywhereMs: Math.round(world.silence.anyMs) },
    largestReplicaMb: world.largestReplicaMb,
    ...figuresOf(history),
    verdicts: judged.map(({ promise, ms, violations }) => ({ promise, ms, violations: violations.length })),
    violations: found,
    timeline: done,
  };
  console.log(`\n${table(figures.faults.map((f) => [f.kind, `${f.count}x`, ...healing(f)]))}`);
  console.log(`\ncalls   ${Object.entries(figures.calls).map(([k, c]) => `${k} ${c.ok} ok, ${c.failed} failed`).join(" · ")}`);
  console.log(`watches ${JSON.stringify(figures.watches)}, ended ${JSON.stringify(figures.watchEnds)}, relists ${JSON.stringify(figures.relists)}`);
  console.log(`errors  ${JSON.stringify(figures.errors)}`);
  const { longestAtOneReplicaMs, longestEverywhereMs } = figures.writesAway;
  console.log(`longest time without a write: ${seconds(longestAtOneReplicaMs)} at one replica, ${seconds(longestEverywhereMs)} everywhere`);
  console.log(`largest replica: ${figures.largestReplicaMb} MiB; history: ${figures.items} items`);
  console.log(`heal p50 ${seconds(figures.heal.p50Ms)}, max ${seconds(figures.heal.maxMs)}\n`);
  console.log(table(judged.map(({ promise, ms, violations }) => [promise, violations.length === 0 ? "kept" : `BROKEN ${violations.length}x`, `${ms} ms`])));
  if (options.json !== "") writeFileSync(options.json, `${JSON.stringify(figures, undefined, 2)}\n`);
  if (found.length === 0) {
    console.log(`\nevery promise was kept (seed ${seed})`);
    if (!options.keep) rmSync(world.folder, { recursive: true, force: true });
    return 0;
  }
  const file = join(world.folder, "history.jsonl");
  writeHistory(file, history);
  console.log(`\n${found.slice(0, SHOWN).map((v) => v.text).join("\n")}${found.length > SHOWN ? `\n… and ${found.length - SHOWN} more` : ""}`);
  console.log(`\n${found.length} violations, seed ${seed}, history ${file}`);
  return 1;
}

function writeHistory(file: string, { facts, items, end }: History): void {
  writeFileSync(file, `${JSON.stringify({ kind: "history", facts, end })}\n`);
  // Not in one text: a long run has more than a string can hold.
  for (let at = 0; at < items.length; at += 1_000) {
    const lines = items.slice(at, at + 1_000).map((item) => `${JSON.stringify(item)}\n`);
    writeFileSync(file, lines.join(""), { flag: "a" });
  }
}

function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)));
  return rows.map((row) => `  ${row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join("  ")}`.trimEnd()).join("\n");
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
