/** Load by h2load, which costs a small part of what a JavaScript client would. */
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { onPath } from "./processes.mjs";

const run = promisify(execFile);

/** Why a bench that needs h2load cannot run; undefined when it can. */
export function noH2load() {
  return onPath("h2load") ? undefined : "h2load is not installed (Debian package nghttp2-client)";
}

/** Connections × streams = calls in flight. */
const CONNECTIONS = 6;
const STREAMS = 10;

/**
 * Makes `calls` unary calls of one method with one request, 60 in flight. Throws unless all were answered with HTTP 200 and
 * together with exactly `calls` messages of `answerBytes`: h2load does not read grpc-status, and a refusal carries no message.
 * Answers calls per second, and the server's CPU time per call in µs.
 */
export async function h2load(scope, server, { path, request, answerBytes, calls }) {
  const file = join(scope.folder(), "body");
  writeFileSync(file, framed(request));
  const before = server.cpuMs();
  const args = [
    ...["-n", String(calls), "-c", String(CONNECTIONS), "-m", String(STREAMS), "-t", "1", "-d", file],
    ...["-H", "content-type: application/grpc", "-H", "te: trailers", "-w", "20", "-W", "24"],
    `http://${server.address}${path}`,
  ];
  const { stdout } = await run("h2load", args, { maxBuffer: 1 << 24 });
  const after = server.cpuMs();
  check(stdout, calls, answerBytes);
  return {
    callsPerSecond: Number(/, ([\d.]+) req\/s/.exec(stdout)?.[1]),
    cpuMicros: before === undefined || after === undefined ? Number.NaN : ((after - before) * 1_000) / calls,
  };
}

/** A gRPC message: not compressed, its length, its bytes. */
export function framed(message) {
  const frame = Buffer.alloc(5 + message.byteLength);
  frame.writeUInt32BE(message.byteLength, 1);
  frame.set(message, 5);
  return frame;
}

function check(stdout, calls, answerBytes) {
  const good = Number(/(\d+) 2xx/.exec(stdout)?.[1]);
  const data = Number(/\((\d+)\) data/.exec(stdout)?.[1]);
  const expected = calls * (5 + answerBytes);
  if (good !== calls || data !== expected) {
    throw new Error(`${good} of ${calls} calls were answered, with ${data} bytes instead of ${expected}:\n${stdout}`);
  }
}
