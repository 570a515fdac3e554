/** npm run bench -- [--quick] [--json FILE] [bench…]: exit code 1 when a full run misses a limit. */
import { mkdirSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { dirname } from "node:path";
import { parseArgs } from "node:util";
import { commit } from "./benches/commit.mjs";
import { corpusLoad } from "./benches/corpus-load.mjs";
import { fullSchema } from "./benches/full-schema.mjs";
import { gate } from "./benches/gate.mjs";
import { gateGrpc } from "./benches/gate-grpc.mjs";
import { getStubs } from "./benches/get-stubs.mjs";
import { listEncoding } from "./benches/list-encoding.mjs";
import { noStoreCall } from "./benches/no-store-call.mjs";
import { watchFanout } from "./benches/watch-fanout.mjs";
import { Scope } from "./support/processes.mjs";
import { table } from "./support/table.mjs";

const BENCHES = {
  "full-schema": fullSchema,
  "list-encoding": listEncoding,
  "get-stubs": getStubs,
  "no-store-call": noStoreCall,
  "watch-fanout": watchFanout,
  commit,
  "corpus-load": corpusLoad,
  gate,
  "gate-grpc": gateGrpc,
};

const { values, positionals } = parseArgs({
  options: { quick: { type: "boolean", default: false }, json: { type: "string" } },
  allowPositionals: true,
});
const unknown = positionals.filter((name) => !(name in BENCHES));
if (unknown.length > 0) {
  console.error(`no such bench: ${unknown.join(", ")}; there are ${Object.keys(BENCHES).join(", ")}`);
  process.exit(2);
}

const results = [];
for (const bench of positionals.length > 0 ? positionals : Object.keys(BENCHES)) {
  console.error(`${bench} …`);
  const scope = new Scope();
  try {
    results.push({ bench, ...(await BENCHES[bench](scope, { quick: values.quick })) });
  } finally {
    await scope.close();
  }
}

const report = { node: process.version, cpus: cpus().length, quick: values.quick, at: new Date().toISOString(), results };
console.log(table(results));
if (values.json) {
  mkdirSync(dirname(values.json), { recursive: true });
  writeFileSync(values.json, `${JSON.stringify(report, null, 2)}\n`);
} else console.log(JSON.stringify(report));
const missed = results.flatMap(({ bench, rows = [] }) => rows.filter((r) => r.verdict === "MISSED").map((r) => `${bench} (${r.what})`));
if (missed.length > 0) console.error(`missed: ${missed.join(", ")}`);
process.exitCode = missed.length > 0 && !values.quick ? 1 : 0;
