/** GetFullSchema of a definition in memory against an equally long answer of bare grpc-js. */
import { create, fromBinary } from "@bufbuild/protobuf";
import { connect, declared, encode, SERVICE, wire } from "../support/client.mjs";
import { h2load, noH2load } from "../support/h2load.mjs";
import { startPassThrough, startRegistry } from "../support/processes.mjs";
import { interleave, row } from "../support/stats.mjs";
import { definitionOf } from "../support/tools.mjs";

/** Two in three of the real definitions are shorter. */
const ANSWER_BYTES = 2_048;
const AT_LEAST = 0.8;

export async function fullSchema(scope, { quick }) {
  const skipped = noH2load();
  if (skipped) return { skipped };
  const registry = await startRegistry(scope);
  const client = connect(scope, registry.address);
  const definition = definitionOf("look_up", ANSWER_BYTES - 150);
  await client.call("Register", declared("bench", [definition]));
  const request = encode("GetFullSchemaRequest", { key: { case: "toolId", value: "bench/look_up" } });
  const answer = await client.raw(`${SERVICE}/GetFullSchema`, request);
  check(answer, definition);
  const bare = await startPassThrough(scope, { unaryBytes: answer.byteLength });

  const load = { request, answerBytes: answer.byteLength };
  const ours = (calls) => h2load(scope, registry, { ...load, calls, path: `${SERVICE}/GetFullSchema` });
  const theirs = (calls) => h2load(scope, bare, { ...load, calls, path: "/passthrough.Service/Unary" });
  await ours(20_000);
  await theirs(20_000);
  const calls = quick ? 20_000 : 60_000;
  const rounds = await interleave(quick ? 3 : 11, () => ours(calls), () => theirs(calls));
  return {
    rows: [
      row({ what: `in memory, ${answer.byteLength} B`, unit: "calls/s", rounds, pick: (r) => r.callsPerSecond, atLeast: AT_LEAST }),
      row({ what: "the same", unit: "µs CPU/call", rounds, pick: (r) => r.cpuMicros }),
    ],
  };
}

function check(answer, definition) {
  const { schema } = fromBinary(wire.GetFullSchemaResponseSchema, answer);
  const empty = create(wire.FullSchemaSchema);
  const { definition: got, freshness } = schema ?? empty;
  if (!definition.equals(got) || freshness !== wire.Freshness.CACHED) throw new Error("GetFullSchema does not answer what was registered, from memory");
}
