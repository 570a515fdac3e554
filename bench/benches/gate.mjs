/**
 * FindTools in this process, whole (rules, memory, past outcomes, siblings), at 1k, 10k and 100k tools; its core against MiniSearch and against
 * plain BM25 over names and descriptions; changes that come in while it searches; what an index takes.
 */
import MiniSearch from "minisearch";
import { candidatesFor } from "../../dist/gate/candidates.js";
import { intentOf } from "../../dist/gate/intent.js";
import { indexOf } from "../../dist/gate/live-index.js";
import { IntentMemory } from "../../dist/gate/memory.js";
import { Draw, intents, tools } from "../support/gate-corpus.mjs";
import { PlainBm25 } from "../support/plain-bm25.mjs";
import { Scope } from "../support/processes.mjs";
import { interleave, row } from "../support/stats.mjs";
import { wholeGate } from "../support/whole-gate.mjs";

/** p99 in milliseconds that a catalogue of that size may take. */
const SIZES = [
  { count: 1_000, atMost: 1 },
  { count: 10_000, atMost: 2 },
  { count: 100_000, atMost: 5 },
];
const CHANGES_PER_SECOND = 100;
/** What changes beside it may make of the p99. */
const CHANGING_AT_MOST = 2;
const TOP = 5;
const NOW_MS = Date.UTC(2026, 0, 1);
const PACE = { monotonic: () => performance.now(), pause: () => new Promise((resolve) => setImmediate(resolve)) };

export async function gate(_scope, { quick }) {
  const rows = [];
  for (const size of quick ? SIZES.slice(0, 2) : SIZES) {
    const scope = new Scope();
    try {
      rows.push(...(await ofSize(scope, size, quick)));
    } finally {
      await scope.close();
    }
  }
  return { rows };
}

async function ofSize(scope, { count, atMost }, quick) {
  const documents = tools(count);
  const asked = intents(quick ? 100 : 300);
  const size = `${count / 1_000}k tools`;
  const rounds = quick ? 3 : 5;
  const told = quick ? 500 : 5_000;
  const alone = await indexAlone(documents, size);
  const rows = [...alone.rows];

  const began = performance.now();
  const whole = await wholeGate(scope, documents, told);
  rows.push(row({ what: `label and definition of each of ${size} read and indexed`, unit: "ms", rounds: { ours: [performance.now() - began] } }));
  const many = Array.from({ length: 1_000 }, (_, i) => asked[i % asked.length]);
  const found = () => p99Of(many, (text) => whole.find(text));
  // A replica that serves is warm: the compiler has seen some thousand questions.
  for (let i = 0; i < 3; i++) await found();
  const ours = [];
  for (let i = 0; i < rounds; i++) ours.push(await found());
  rows.push(row({ what: `p99 of FindTools, ${size}`, unit: "ms", rounds: { ours }, atMost }));
  const changing = await interleave(rounds, () => whileChanging(whole, documents, asked, true), () => whileChanging(whole, documents, asked, false));
  rows.push(row({ what: `p99 of FindTools, ${size}, ${CHANGES_PER_SECOND} changes/s and none`, unit: "ms", rounds: changing, atMost: CHANGING_AT_MOST }));

  const memory = remembered(documents, told);
  const core = (text) => candidatesFor(alone.index, { intent: intentOf({ text }), nowMs: NOW_MS, memory, pool: 50 });
  // Theirs may take a hundred times as long, so they are asked fewer times: the slowest of those is what is compared.
  const some = asked.slice(0, Math.max(20, Math.ceil(asked.length * Math.min(1, 5_000 / count))));
  for (const [name, theirs] of Object.entries(others(documents))) {
    p99(some, core);
    const pair = await interleave(3, async () => p99(some, core), async () => p99(some, theirs));
    rows.push(row({ what: `p99 of its core, ${size}, and ${name}`, unit: "ms", rounds: pair }));
  }
  return rows;
}

async function indexAlone(documents, size) {
  const before = memoryNow();
  const began = performance.now();
  const index = await indexOf(documents, PACE);
  const builtMs = performance.now() - began;
  const held = memoryNow() - before;
  const rows = [
    row({ what: `index of ${size}`, unit: "MB", rounds: { ours: [held / 2 ** 20] } }),
    row({ what: `its arrays`, unit: "MB", rounds: { ours: [index.arrayBytes / 2 ** 20] } }),
    row({ what: `building it`, unit: "ms", rounds: { ours: [builtMs] } }),
  ];
  return { index, rows };
}

function others(documents) {
  const mini = new MiniSearch({
    idField: "toolId",
    fields: ["name", "description"],
    tokenize: (text) => text.split(/[^\p{L}\p{N}]+|(?<=\p{Ll})(?=\p{Lu})/u).filter(Boolean),
  });
  mini.addAll(documents);
  const plain = new PlainBm25(documents);
  return {
    MiniSearch: (text) => mini.search(text).slice(0, TOP),
    "plain BM25": (text) => plain.find(text, TOP),
  };
}

/** The slowest of a hundred, in milliseconds. */
function p99(asked, find) {
  const times = asked.map((text) => {
    const began = performance.now();
    find(text);
    return performance.now() - began;
  });
  return slowest(times);
}

function slowest(times) {
  times.sort((a, b) => a - b);
  return times[Math.floor(times.length * 0.99)];
}

async function p99Of(asked, find) {
  const times = [];
  for (const text of asked) {
    const began = performance.now();
    await find(text);
    times.push(performance.now() - began);
  }
  return slowest(times);
}

/** Searches at their own pace; a change is due every ten milliseconds, and what a rebuild does of itself happens between. */
async function whileChanging(whole, documents, asked, changing) {
  const times = [];
  let due = performance.now();
  let change = 0;
  for (const text of asked) {
    if (changing)
      for (; due <= performance.now(); due += 1_000 / CHANGES_PER_SECOND, change++)
        whole.change(documents[(change * 7_919) % documents.length], change);
    const began = performance.now();
    await whole.find(text);
    times.push(performance.now() - began);
    await PACE.pause();
    while (performance.now() - began < 3) await PACE.pause();
  }
  return slowest(times);
}

function remembered(documents, count) {
  const memory = new IntentMemory("bench");
  const draw = new Draw(11);
  for (const [i, text] of intents(count, 5).entries()) {
    const { toolId } = documents[draw.below(documents.length)];
    memory.record({ toolId, caller: `caller ${i % 10}`, intent: intentOf({ text }), success: true, atMs: NOW_MS });
  }
  return memory;
}

function memoryNow() {
  globalThis.gc?.();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
