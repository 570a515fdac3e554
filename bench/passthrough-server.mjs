/**
 * What grpc-js alone can do: Buffers in, Buffers out, nothing between. It answers every unary call with the same bytes,
 * holds Watch streams open, and writes one shared Buffer to all of them when Fire is called.
 *
 * node bench/passthrough-server.mjs <bytes of a unary answer> <base64 of the event>
 */
import { Server, ServerCredentials } from "@grpc/grpc-js";

const answer = Buffer.alloc(Number(process.argv[2] ?? 0), 0x61);
const event = Buffer.from(process.argv[3] ?? "", "base64");
const streams = new Set();

const identity = (bytes) => bytes;
const method = (name, responseStream) => ({
  path: `/passthrough.Service/${name}`,
  requestStream: false,
  responseStream,
  requestSerialize: identity,
  requestDeserialize: identity,
  responseSerialize: identity,
  responseDeserialize: identity,
});

// As the registry has it, so that the difference is the registry's own work.
const server = new Server({ "grpc.enable_channelz": 0, "grpc.max_concurrent_streams": 1_000 });
server.addService(
  { Unary: method("Unary", false), Watch: method("Watch", true), Fire: method("Fire", false) },
  {
    Unary: (_call, callback) => callback(null, answer),
    Watch: (call) => {
      streams.add(call);
      call.on("cancelled", () => streams.delete(call));
      call.write(Buffer.alloc(1));
    },
    Fire: (_call, callback) => {
      for (const call of streams) call.write(event);
      callback(null, Buffer.alloc(0));
    },
  },
);
server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, port) => {
  if (error) throw error;
  process.stdout.write(`pass-through at 127.0.0.1:${port}\n`);
});
process.once("SIGTERM", () => process.exit());
