import { mkdirSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { benchmark, type Measured } from "./benchmark.js";
import { coldStart } from "./cold-start.js";
import { erp } from "./erp.js";
import { benchIntents, LARK, type Listings, readIntents, readListings, SIX } from "./listings.js";
import { marathon } from "./marathon.js";
import { type Aim, type Outcome, percent, type Say, sayAims } from "./report.js";
import { World } from "./world.js";

/** Tool tokens of a turn on the corpus. */
const TURN_TOKENS = 2_400;
/** Of all tools' tokens, with 120 tools. */
const FEWER = 0.95;

export interface DemoOptions {
  /** Of the repository; its `dist` is built. */
  readonly root: string;
  readonly listings: Listings;
  /** A folder of retrieval sets, which may be absent. */
  readonly retrieval: string;
  readonly rounds: number;
  readonly say: Say;
}

type Story = (world: World, options: DemoOptions) => Promise<Outcome>;

export const STORIES: Readonly<Record<string, Story>> = {
  marathon: (world, { say }) => marathon(world, say),
  erp: (world, { listings, say }) => {
    const lark = listings.all.find(({ id }) => id === LARK);
    if (!lark) throw new Error(`there is no listing ${LARK}`);
    return erp(world, lark, say);
  },
  tokens: (world, { root, listings, say }) => {
    const six = listings.all.filter(({ id }) => (SIX as readonly string[]).includes(id));
    const aims = ({ gate, all }: Measured): Aim[] => {
      const fewer = 1 - gate.turn / all.turn;
      return [{ what: `a turn has ≥ ${percent(FEWER)} fewer tool tokens than all`, found: percent(fewer), met: fewer >= FEWER }];
    };
    return benchmark(world, { story: "tokens", title: "The token benchmark", listings: six, intents: readIntents(root, six), aims }, say);
  },
  corpus: (world, { root, listings, retrieval, say }) => {
    const intents = [...readIntents(root, listings.all), ...benchIntents(retrieval, listings.all)];
    return benchmark(
      world,
      {
        story: "corpus",
        title: listings.reduced === "" ? "The whole corpus" : "All listings of the repository",
        listings: listings.all,
        intents,
        aims: ({ gate, recall }) => [
          { what: `a turn has ≤ ${TURN_TOKENS.toLocaleString("en")} tool tokens at the median`, found: gate.turn.toLocaleString("en"), met: gate.turn <= TURN_TOKENS },
          { what: "the needed tool is injected as often as the gate's R@5", found: `${percent(gate.reached)} against ${percent(recall)}`, met: gate.reached >= recall },
        ],
      },
      say,
    );
  },
  "cold-start": (world, { listings, rounds, say }) => coldStart(world, listings.all, rounds, say),
};

/** One registry for all of them, each story in a namespace of its own. */
export async function tell(names: readonly string[], options: DemoOptions): Promise<Outcome[]> {
  const world = await World.start(options.root);
  try {
    const outcomes: Outcome[] = [];
    for (const name of names) {
      const outcome = await (STORIES[name] as Story)(world, options);
      sayAims(outcome.aims, options.say);
      outcomes.push(outcome);
    }
    return outcomes;
  } finally {
    await world.stop();
  }
}

export async function main(args: readonly string[], root: string): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      story: { type: "string", multiple: true },
      json: { type: "string" },
      corpus: { type: "string", default: join(root, "../shared/corpus") },
      rounds: { type: "string", default: "7" },
    },
  });
  const names = values.story ?? Object.keys(STORIES);
  const unknown = names.filter((name) => !(name in STORIES));
  const rounds = Number(values.rounds);
  if (unknown.length > 0 || !Number.isInteger(rounds) || rounds < 1) {
    console.error(unknown.length > 0 ? `no such story: ${unknown.join(", ")}; there are ${Object.keys(STORIES).join(", ")}` : "--rounds takes a whole number from 1");
    return 2;
  }
  const corpus = resolve(values.corpus);
  const listings = readListings(root, join(corpus, "mcp-servers"));
  if (listings.reduced !== "") console.log(listings.reduced);
  console.log(`Node ${process.version}, ${cpus().length} processors. A scripted agent: no model is asked.`);
  const outcomes = await tell(names, { root, listings, retrieval: join(corpus, "retrieval"), rounds, say: (line) => console.log(line) });
  if (values.json) {
    mkdirSync(dirname(resolve(values.json)), { recursive: true });
    writeFileSync(values.json, `${JSON.stringify({ node: process.version, reduced: listings.reduced, outcomes }, null, 2)}\n`);
  }
  return 0;
}
