/**
 * `toolcrib wrap` serves on loopback alone. In a container this runs it and passes the connections of others on to it:
 *
 *   node door.mjs <port for others> <port on loopback> <command…>
 *
 * Ends as the command ends.
 */
import { spawn } from "node:child_process";
import { connect, createServer } from "node:net";
import { constants } from "node:os";
import { pipeline } from "node:stream";

const [outside, inside] = process.argv.slice(2, 4).map(Number);
const [command, ...args] = process.argv.slice(4);
if (!outside || !inside || !command) throw new Error("usage: door.mjs <port for others> <port on loopback> <command…>");

createServer((caller) => {
  const wrapped = connect(inside, "127.0.0.1");
  // Either side may vanish at any moment: each pipeline then ends both, and the next connection is tried anew.
  pipeline(caller, wrapped, () => undefined);
  pipeline(wrapped, caller, () => undefined);
}).listen(outside);

const child = spawn(command, args, { stdio: "inherit" });
for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  process.stderr.write(`${command} cannot be started: ${error.message}\n`);
  process.exit(127);
});
child.on("exit", (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
