/** What a run is told on its command line. */
import { parseArgs } from "node:util";

export type Topology = "sentinel" | "cluster" | "single";

export interface ChaosOptions {
  /** How long faults go on; start, quiet time and verdicts come on top. */
  readonly minutes: number;
  readonly seed: number;
  /** Where the figures go; empty: nowhere. */
  readonly json: string;
  readonly topology: Topology;
  readonly servers: number;
  readonly watchers: number;
  readonly replicas: number;
  /** Keep the folder with history and logs though all is well. */
  readonly keep: boolean;
}

export const USAGE = `npm run chaos -- [options]
  --minutes N     how long faults go on (1)
  --seed S        of the plan of faults; the same seed makes the same plan (random)
  --json F        write the figures there
  --topology T    sentinel, cluster or single (sentinel)
  --servers N     registering servers (100)
  --watchers N    watchers (50)
  --replicas N    replicas of the registry (3)
  --keep          keep history and logs though no promise was broken`;

const TOPOLOGIES: readonly string[] = ["sentinel", "cluster", "single"];

/** Throws an Error that names everything that is wrong. */
export function readOptions(argv: readonly string[]): ChaosOptions {
  const text = { type: "string" } as const;
  const { values } = parseArgs({
    args: [...argv],
    options: { minutes: text, seed: text, json: text, topology: text, servers: text, watchers: text, replicas: text, keep: { type: "boolean" } },
  });
  const wrong: string[] = [];
  const number = (name: "minutes" | "seed" | "servers" | "watchers" | "replicas", fallback: number, least: number, whole = true): number => {
    const given = values[name];
    const read = given === undefined ? fallback : Number(given);
    if (!Number.isFinite(read) || read < least || (whole && !Number.isInteger(read))) wrong.push(`--${name} ${given}: a number of at least ${least}`);
    return read;
  };
  const topology = values.topology ?? "sentinel";
  if (!TOPOLOGIES.includes(topology)) wrong.push(`--topology ${topology}: one of ${TOPOLOGIES.join(", ")}`);
  const options = {
    minutes: number("minutes", 1, 0.1, false),
    seed: number("seed", Math.floor(Math.random() * 1e9), 0),
    json: values.json ?? "",
    topology: topology as Topology,
    servers: number("servers", 100, 1),
    watchers: number("watchers", 50, 1),
    replicas: number("replicas", 3, 2),
    keep: values.keep ?? false,
  };
  if (wrong.length > 0) throw new Error(wrong.join("\n"));
  return options;
}
