/**
 *   npm run demo -- [--story marathon|erp|tokens|corpus|cold-start]… [--json FILE] [--corpus DIR] [--rounds N]
 *
 * A scripted agent on a real gateway, a real registry and real MCP servers, offline. main.ts says how. With --as-built it takes dist as it is.
 */
import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { isStale, transpileInto } from "../chaos/transpile.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");

const argv = process.argv.slice(2).filter((word) => word !== "--as-built");
if (argv.length === process.argv.length - 2 && isStale(ROOT)) {
  console.log("building dist …");
  const built = spawnSync("npm", ["run", "--silent", "build"], { cwd: ROOT, stdio: "inherit" });
  if (built.status !== 0) process.exit(1);
}
const prepared = transpileInto(ROOT, "demo", ["src", "test/demo"]);
process.on("exit", () => rmSync(prepared, { recursive: true, force: true }));
process.setSourceMapsEnabled(true);
const { main } = await import(pathToFileURL(join(prepared, "test/demo/main.js")).href);
process.exitCode = await main(argv, ROOT);
