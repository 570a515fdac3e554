/** A list put together from stored bytes against encoding it anew, in this process. */
import { create, equals, fromBinary, toBinary } from "@bufbuild/protobuf";
import { stubPage } from "../../dist/catalogue/stub-pages.js";
import { NamespaceState, ServerView } from "../../dist/catalogue/state.js";
import { everything } from "../../dist/domain/filter.js";
import { LIMITS } from "../../dist/domain/limits.js";
import { EMPTY_STUB } from "../../dist/domain/stub.js";
import { asMessage } from "../../dist/rpc/grpc/internals.js";
import { stubsAnswer } from "../../dist/rpc/answers.js";
import { stubCodec } from "../../dist/store/codec/stub.js";
import { wire } from "../support/client.mjs";
import { interleave, row } from "../support/stats.mjs";

const SERVERS = 20;
const TOOLS = 50;
/** Every tenth tool has it. */
const TAG = "rare";
const AT_MOST = 0.05;
const POSITION = { partition: 0, revision: 1, chain: "0123456789abcdef" };

export async function listEncoding(_scope, { quick }) {
  const ns = catalogue();
  const all = everything("default");
  const tagged = { ...all, tagsAll: [TAG] };
  const schema = wire.GetStubsResponseSchema;
  const { stubs } = fromBinary(schema, Buffer.concat(answers(ns, all).map(framed)));
  const encode = (some) => toBinary(schema, create(schema, { stubs: some }));
  const scan = () => encode(stubs.filter((stub) => stub.tags.includes(TAG)));
  const first = fromBinary(schema, framed(answers(ns, all)[0])).stubs;

  // grpc-js copies every message into its frame, whoever made it; with and without that copy.
  const sent = (messages) => messages.map(framed);
  const pairs = [
    { what: `${stubs.length} stubs, ${encode(stubs).byteLength} B`, ours: () => answers(ns, all), theirs: () => [encode(stubs)], atMost: AT_MOST },
    { what: "the same, in the frame", ours: () => sent(answers(ns, all)), theirs: () => sent([encode(stubs)]) },
    { what: `first page again, ${first.length} stubs`, ours: () => [answerOf(stubPage(ns, all, LIMITS.pageStubs, ""))], theirs: () => [encode(first)] },
    { what: `by tag, ${framed(answers(ns, tagged)[0]).byteLength} B`, ours: () => answers(ns, tagged), theirs: () => [scan()] },
  ];
  const rows = [];
  for (const { what, ours, theirs, atMost } of pairs) {
    const bytes = (messages) => Buffer.concat(messages.map(framed));
    if (!equals(schema, listed(bytes(ours())), listed(bytes(theirs())))) throw new Error(`${what}: the lists differ`);
    const times = quick ? 100 : 400;
    for (const warm of [ours, theirs]) micros(warm, times);
    const rounds = await interleave(quick ? 5 : 15, async () => micros(ours, times * 5), async () => micros(theirs, times));
    rows.push(row({ what, unit: "µs CPU", rounds, atMost }));
  }
  return { rows };
}

function listed(bytes) {
  return create(wire.GetStubsResponseSchema, { stubs: fromBinary(wire.GetStubsResponseSchema, bytes).stubs });
}

/** The whole list in its answers, none of them cached. */
function answers(ns, filter) {
  const out = [];
  let token = "";
  do {
    // As if something had changed.
    ns.revision++;
    const page = stubPage(ns, filter, LIMITS.pageStubs, token);
    out.push(answerOf(page));
    token = page.nextPageToken;
  } while (token !== "");
  return out;
}

/** What the registry hands to grpc-js: parts that lie where they are stored. */
function answerOf(page) {
  return asMessage(stubsAnswer({ ...page, position: POSITION, notModified: false, stale: false }));
}

/** What grpc-js makes of it. */
function framed(message) {
  const frame = Buffer.allocUnsafe(message.byteLength);
  if (message.copy) message.copy(frame, 0);
  else frame.set(message);
  return frame;
}

/** CPU time of one piece of work, so that other programs do not count. */
function micros(work, times) {
  const began = process.cpuUsage();
  for (let i = 0; i < times; i++) work();
  const { user, system } = process.cpuUsage(began);
  return (user + system) / times;
}

function catalogue() {
  const ns = new NamespaceState();
  for (let s = 0; s < SERVERS; s++) {
    const serverId = `server-${s}`;
    const tools = Array.from({ length: TOOLS }, (_, t) => toolOf(serverId, t)).sort((a, b) => (a.name < b.name ? -1 : 1));
    ns.put(new ServerView({ revision: 1, header: { serverId, availability: "available" }, tools }, stubCodec), 1);
  }
  return ns;
}

function toolOf(serverId, t) {
  const briefDescription = "Looks up one record by its key and answers all of its fields.";
  const tags = t % 10 === 0 ? ["read", TAG] : ["read"];
  const digest = `sha256:${String(t).padStart(64, "0")}`;
  return stubCodec.encode({ ...EMPTY_STUB, serverId, name: `tool_${t}`, briefDescription, tags: tags.sort(), digest, sizeBytes: 1_000 + t }, true);
}
