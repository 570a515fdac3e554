/**
 *   npm run eval -- [--set NAME]… [--queries FILE] [--json F] [--corpus DIR] [--via in-process|grpc]…
 *
 * Scores retrieval sets. main.ts says how.
 */
import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { isStale, transpileInto } from "../chaos/transpile.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");

if (process.argv.includes("grpc") && isStale(ROOT)) {
  console.log("building dist …");
  const built = spawnSync("npm", ["run", "--silent", "build"], { cwd: ROOT, stdio: "inherit" });
  if (built.status !== 0) process.exit(1);
}
const prepared = transpileInto(ROOT, "eval", ["src", "test/eval", "test/support"]);
process.on("exit", () => rmSync(prepared, { recursive: true, force: true }));
process.setSourceMapsEnabled(true);
const { main } = await import(pathToFileURL(join(prepared, "test/eval/main.js")).href);
process.exitCode = await main(process.argv.slice(2), ROOT);
