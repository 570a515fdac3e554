/**
 *   npm run chaos -- --minutes N --seed S --json F [--topology sentinel|cluster|single] [--servers 100] [--watchers 50] [--replicas 3]
 *
 * Builds what has to be built, then runs main.ts. With --as-built it takes dist as it is.
 */
import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { isStale, prepare } from "./transpile.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");

const argv = process.argv.slice(2).filter((word) => word !== "--as-built");
if (argv.length === process.argv.length - 2 && isStale(ROOT)) {
  console.log("building dist …");
  const built = spawnSync("npm", ["run", "--silent", "build"], { cwd: ROOT, stdio: "inherit" });
  if (built.status !== 0) {
    console.error("dist could not be built, and chaos on an older one would prove nothing.");
    process.exit(1);
  }
}
const prepared = prepare(ROOT);
process.on("exit", () => rmSync(prepared, { recursive: true, force: true }));
process.setSourceMapsEnabled(true);
const { main } = await import(pathToFileURL(join(prepared, "test/chaos/main.js")).href);
process.exit(await main(argv, prepared));
