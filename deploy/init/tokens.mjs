/**
 * Makes the tokens of a local stack, once: random tokens for those who call, their hashes for the registries.
 *
 *   node tokens.mjs <registry folder> <registrant folder> <operator folder>   makes what is missing
 *   node tokens.mjs show <operator folder>                                    prints the operator's token
 *
 * <registry folder>/tokens.json is the registry's --tokens-file; <registrant folder>/token and <operator folder>/token are
 * what TOOLCRIB_TOKEN_FILE of a caller names. Delete the volumes to begin anew.
 */
import { createHash, randomBytes } from "node:crypto";
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const CALLERS = {
  registrant: [{ role: "registrant", namespaces: ["default"], servers: ["clock", "sample"] }],
  operator: [{ role: "operator", namespaces: ["*"] }],
};

const [first, ...rest] = process.argv.slice(2);
if (first === "show" && rest.length === 1) process.stdout.write(`${readFileSync(join(rest[0], "token"), "utf8")}\n`);
else if (first !== undefined && rest.length === 2) make(first, { registrant: rest[0], operator: rest[1] });
else throw new Error("usage: tokens.mjs <registry folder> <registrant folder> <operator folder> | show <operator folder>");

function make(registry, folders) {
  const tokens = Object.entries(CALLERS).map(([principal, grants]) => {
    const sha256 = createHash("sha256").update(tokenIn(folders[principal])).digest("hex");
    return { sha256, principal, grants };
  });
  replace(join(registry, "tokens.json"), `${JSON.stringify({ tokens }, null, 2)}\n`);
  process.stdout.write(`tokens of ${tokens.map((t) => t.principal).join(" and ")} are in place\n`);
}

/** Made before the hashes are, so that a run cut short leaves nothing that a second run does not complete. */
function tokenIn(folder) {
  const path = join(folder, "token");
  if (!existsSync(path)) replace(path, `tcrib_${randomBytes(32).toString("base64url")}`);
  return readFileSync(path, "utf8");
}

/** Readers see the old file or the new one whole. */
function replace(path, text) {
  rmSync(`${path}.new`, { force: true });
  writeFileSync(`${path}.new`, text, { mode: 0o400 });
  renameSync(`${path}.new`, path);
}
