/** One change to many open watches, until the last has it, against bare grpc-js that writes one Buffer to as many streams. */
import { connect, declared, encode, SERVICE } from "../support/client.mjs";
import { startPassThrough, startRegistry } from "../support/processes.mjs";
import { interleave, row } from "../support/stats.mjs";
import { Streams } from "../support/streams.mjs";
import { definitionOf } from "../support/tools.mjs";

const PER_CONNECTION = 500;
/** First byte of a WatchResponse that is a change, field 2. */
const CHANGE = 0x12;
const WAIT_MS = 30_000;

export async function watchFanout(scope, { quick }) {
  const count = quick ? 1_000 : 5_000;
  const registry = await startRegistry(scope);
  const client = connect(scope, registry.address);
  let turn = 0;
  const change = () => client.call("Register", declared("bench", [definitionOf("look_up", 400 + (turn++ % 300))]));
  await change();
  const watches = await openAll(scope, registry.address, count, `${SERVICE}/Watch`, encode("WatchRequest", {}));
  const { message } = await watches.next(change, CHANGE);

  const event = message.subarray(5);
  const bare = await startPassThrough(scope, { event });
  const streams = await openAll(scope, bare.address, count, "/passthrough.Service/Watch", Buffer.alloc(0));
  const bareClient = connect(scope, bare.address);
  const fire = () => bareClient.raw("/passthrough.Service/Fire", Buffer.alloc(0));

  const ours = async () => (await watches.next(change, CHANGE)).ms;
  const theirs = async () => (await streams.next(fire, CHANGE)).ms;
  await ours();
  await theirs();
  const rounds = await interleave(quick ? 5 : 15, ours, theirs);
  return { rows: [row({ what: `${count} watches, ${event.byteLength} B, last delivery`, unit: "ms", rounds })] };
}

/** Opens them, and waits until each has heard something. */
async function openAll(scope, address, count, path, request) {
  const heard = new Map();
  let wanted;
  const hear = (key) => (stream, first, payload) => {
    if (wanted && (wanted.first === undefined || wanted.first === first)) {
      heard.set(`${key} ${stream}`, payload);
      if (heard.size === count) wanted.done(Buffer.from(payload));
    }
  };
  const all = (first) =>
    new Promise((resolve, reject) => {
      heard.clear();
      const timer = setTimeout(() => reject(new Error(`${heard.size} of ${count} streams heard it`)), WAIT_MS);
      const done = (message) => {
        clearTimeout(timer);
        wanted = undefined;
        resolve(message);
      };
      wanted = { first, done };
    });
  const opened = all(undefined);
  for (let at = 0; at < count; at += PER_CONNECTION) {
    const connection = await Streams.connect(scope, address);
    connection.onMessage = hear(at);
    for (let i = at; i < Math.min(count, at + PER_CONNECTION); i++) connection.open(path, request);
  }
  await opened;
  return {
    /** ms from the cause until the last stream has a message that begins so. */
    async next(cause, first) {
      const delivered = all(first);
      const began = performance.now();
      const caused = cause();
      const message = await delivered;
      const ms = performance.now() - began;
      await caused;
      return { ms, message };
    },
  };
}
