/** FindTools over gRPC, one call at a time, against the same gate with the same tools in this process. */
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { FindToolsRequestSchema, FindToolsResponseSchema } from "../../dist/gen/toolcrib/v1/gate_service_pb.js";
import { connect, declared } from "../support/client.mjs";
import { intents, tools } from "../support/gate-corpus.mjs";
import { startRegistry } from "../support/processes.mjs";
import { interleave, row } from "../support/stats.mjs";
import { definitionOf, wholeGate } from "../support/whole-gate.mjs";

const SIZES = [1_000, 10_000];
/** Of the p99 in process. */
const AT_MOST = 3;

export async function gateGrpc(scope, { quick }) {
  const rows = [];
  for (const count of quick ? SIZES.slice(0, 1) : SIZES) {
    const documents = tools(count);
    const asked = intents(quick ? 100 : 300);
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
      return times.sort((a, b) => a - b)[Math.floor(times.length * 0.99)];
    };
    const [over, inside] = [measure(find), measure((text) => here.find(text))];
    for (const warm of [over, inside, over, inside]) await warm();
    const rounds = await interleave(quick ? 3 : 7, over, inside);
    rows.push(row({ what: `p99 over gRPC and in process, ${count / 1_000}k tools`, unit: "ms", rounds, atMost: AT_MOST }));
    await registry.stop();
  }
  return { rows };
}

function groupBy(documents) {
  const groups = new Map();
  for (const document of documents) groups.set(document.serverId, [...(groups.get(document.serverId) ?? []), document]);
  return groups;
}
