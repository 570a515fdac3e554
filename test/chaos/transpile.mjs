/** Turns the TypeScript of this harness into files that Node runs, once, so that no child process needs a compiler. */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import ts from "typescript";

const FOLDERS = ["test/chaos", "test/support", "test/validators"];

/**
 * Answers a folder that holds the harness as JavaScript, and `dist` as it is now, which is also its `src`: a build that goes on
 * meanwhile must not change the replicas of a run. It lies under node_modules, where packages are found.
 */
export function prepare(root) {
  const cache = join(root, "node_modules/.cache");
  const out = join(cache, `toolcrib-chaos-${process.pid}`);
  mkdirSync(cache, { recursive: true });
  for (const name of readdirSync(cache)) if (isLeft(name)) rmSync(join(cache, name), { recursive: true, force: true });
  for (const folder of FOLDERS) for (const file of typescriptIn(join(root, folder))) transpile(root, out, file);
  cpSync(join(root, "dist"), join(out, "dist"), { recursive: true });
  symlinkSync(join(out, "dist"), join(out, "src"));
  symlinkSync(join(root, "package.json"), join(out, "package.json"));
  symlinkSync(join(root, "test/fixtures"), join(out, "test/fixtures"));
  return out;
}

/** Of a run that was killed. */
function isLeft(name) {
  const pid = /^toolcrib-chaos-(\d+)$/.exec(name)?.[1];
  return pid !== undefined && (Number(pid) === process.pid || !runs(Number(pid)));
}

function runs(pid) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error.code === "EPERM";
  }
}

/** Answers a folder that holds these folders as JavaScript. */
export function transpileInto(root, what, folders) {
  const out = join(root, "node_modules/.cache", `toolcrib-${what}-${process.pid}`);
  rmSync(out, { recursive: true, force: true });
  for (const folder of folders) for (const file of typescriptIn(join(root, folder))) transpile(root, out, file);
  return out;
}

function typescriptIn(folder) {
  if (!existsSync(folder)) return [];
  const entries = readdirSync(folder, { withFileTypes: true, recursive: true });
  const files = entries.filter((e) => e.isFile() && e.name.endsWith(".ts") && !e.name.endsWith(".test.ts"));
  return files.map((e) => join(e.parentPath, e.name));
}

function transpile(root, out, file) {
  const { outputText } = ts.transpileModule(readFileSync(file, "utf8"), {
    fileName: file,
    compilerOptions: { target: "ES2022", module: "ESNext", verbatimModuleSyntax: true, isolatedModules: true, inlineSourceMap: true },
  });
  const target = join(out, file.slice(root.length).replace(/\.ts$/, ".js"));
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(`${target}.new`, outputText);
  renameSync(`${target}.new`, target);
}

/** Whether anything in `src` is newer than the last build. */
export function isStale(root) {
  const stamp = join(root, "dist/.built");
  if (!existsSync(stamp)) return true;
  const built = statSync(stamp).mtimeMs;
  const entries = readdirSync(join(root, "src"), { withFileTypes: true, recursive: true });
  return entries.some((e) => e.isFile() && statSync(join(e.parentPath, e.name)).mtimeMs > built);
}
