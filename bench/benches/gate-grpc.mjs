/** FindTools over gRPC, one call at a time, against the same gate with the same tools in this process. */
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { FindToolsRequestSchema, FindToolsResponseSchema } from "../../dist/gen/toolcrib/v1/gate_service_pb.js";
import { connect, declared } from "../support/client.mjs";
import { intents, tools } from "../support/gate-corpus.mjs";
import { startPassThrough, startRegistry } from "../support/processes.mjs";
import { interleave, row } from "../support/stats.mjs";
import { definitionOf, wholeGate } from "../support/whole-gate.mjs";

const SIZES = [1_000, 10_000];
/** Of what it takes in process. */
const AT_MOST = 3;
/** What such a question and its answer take, about. */
const REQUEST_BYTES = 120;
const ANSWER_BYTES = 1_800;

export async function gateGrpc(scope, { quick }) {
  const rows = [];
  for (const count of quick ? SIZES.slice(0, 1) : SIZES) {
    const documents = tools(count);
    const some = intents(300);
    const asked = Array.from({ length: 1_000 }, (_, i) => some[i % some.length]);
    const registry = await startRegistry(scope, { store: "memory" });
    const client = connect(scope, registry.address);
    const servers = groupBy(documents);
    for (const [serverId, own] of servers) await client.call("Register", declared(serverId, own.map(definitionOf), { title: own[0].service }));
    const find = async (intent) => {
      const request = toBinary(FindToolsRequestSchema, create(FindToolsRequestSchema, { intent, topK: 5, state: ["session=support"] }));
      return fromBinary(FindToolsResponseSchema, await client.raw("/toolcrib.v1.GateService/FindTools", Buffer.from(request)));
    };
    while ((await find("anything")).catalogueTools < count) await new Promise((resolve) => setTimeout(resolve, 50));
    const here = await wholeGate(scope, documents, 0);
    const measure = (ask) => async () => {
      const times = [];
      for (const text of asked) {
        const began = performance.now();
        await ask(text);
        times.push(performance.now() - began);
      }
      times.sort((a, b) => a - b);
      return { p50: times[Math.floor(times.length * 0.5)], p99: times[Math.floor(times.length * 0.99)] };
    };
    const bare = connect(scope, (await startPassThrough(scope, { unaryBytes: ANSWER_BYTES })).address);
    const [over, inside] = [measure(find), measure((text) => here.find(text))];
    const through = measure(() => bare.raw("/passthrough.Service/Unary", Buffer.alloc(REQUEST_BYTES)));
    // A replica that serves is warm: the compiler has seen some thousand questions.
    for (const warm of [over, inside, through, over, inside, through, over, inside, through]) await warm();
    const rounds = await interleave(quick ? 3 : 7, over, inside);
    const size = `${count / 1_000}k tools`;
    rows.push(row({ what: `p50 over gRPC and in process, ${size}`, unit: "ms", rounds, pick: ({ p50 }) => p50, atMost: AT_MOST }));
    rows.push(row({ what: `p99 over gRPC and in process, ${size}`, unit: "ms", rounds, pick: ({ p99 }) => p99, atMost: AT_MOST }));
    const beside = await interleave(quick ? 3 : 5, over, through);
    rows.push(row({ what: `p99 over gRPC and of a bare pass-through, ${size}`, unit: "ms", rounds: beside, pick: ({ p99 }) => p99 }));
    await registry.stop();
  }
  return { rows };
}

function groupBy(documents) {
  const groups = new Map();
  for (const document of documents) groups.set(document.serverId, [...(groups.get(document.serverId) ?? []), document]);
  return groups;
}
