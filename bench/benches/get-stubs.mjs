/** GetStubs over the wire against equally long answers of bare grpc-js. */
import { fromBinary } from "@bufbuild/protobuf";
import { connect, declared, encode, SERVICE, wire } from "../support/client.mjs";
import { h2load, noH2load } from "../support/h2load.mjs";
import { startPassThrough, startRegistry } from "../support/processes.mjs";
import { interleave, row } from "../support/stats.mjs";
import { definitionOf } from "../support/tools.mjs";

const SERVERS = 20;
const TOOLS = 50;
const PAGES = [
  { stubs: 50, calls: 30_000 },
  { stubs: 300, calls: 8_000 },
];

export async function getStubs(scope, { quick }) {
  const skipped = noH2load();
  if (skipped) return { skipped };
  const registry = await startRegistry(scope);
  const client = connect(scope, registry.address);
  for (let s = 0; s < SERVERS; s++) {
    const tools = Array.from({ length: TOOLS }, (_, t) => definitionOf(`tool_${t}`, 600));
    await client.call("Register", declared(`server-${s}`, tools));
  }
  const rows = [];
  for (const { stubs, calls: full } of PAGES) {
    const request = encode("GetStubsRequest", { pageSize: stubs });
    const answer = await client.raw(`${SERVICE}/GetStubs`, request);
    const got = fromBinary(wire.GetStubsResponseSchema, answer).stubs.length;
    if (got !== stubs) throw new Error(`GetStubs answers ${got} stubs, not ${stubs}`);
    const bare = await startPassThrough(scope, { unaryBytes: answer.byteLength });
    const calls = quick ? full / 4 : full;
    const load = { request, answerBytes: answer.byteLength, calls };
    const ours = () => h2load(scope, registry, { ...load, path: `${SERVICE}/GetStubs` });
    const theirs = () => h2load(scope, bare, { ...load, path: "/passthrough.Service/Unary" });
    await ours();
    await theirs();
    const rounds = await interleave(quick ? 3 : 9, ours, theirs);
    rows.push(row({ what: `${stubs} stubs, ${answer.byteLength} B`, unit: "calls/s", rounds, pick: (r) => r.callsPerSecond }));
    rows.push(row({ what: "the same", unit: "µs CPU/call", rounds, pick: (r) => r.cpuMicros }));
  }
  return { rows };
}
