import { createHash, randomBytes } from "node:crypto";
import { chmodSync, existsSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { Command } from "commander";
import { principalProblems, readGrants } from "../domain/grants.js";
import type { Io } from "./io.js";
import { CommandError, line } from "./io.js";
import { collect, withJson } from "./options.js";

interface NewOptions {
  readonly principal: string;
  readonly role: string;
  readonly namespace?: string[];
  readonly server?: string[];
  readonly expires?: string;
  readonly json?: boolean;
  readonly add?: string;
}

/** Enough that nobody guesses it, and a beginning by which scanners for leaked secrets can know it. */
const TOKEN_BYTES = 32;
const PREFIX = "tcrib_";

export function tokenCommand(io: Io): Command {
  const fresh = new Command("new")
    .description("make a token: it is shown this once, and the registry's tokens file gets only its hash")
    .option("--principal <id>", "who will use it", "me")
    .option("--role <role>", "reader, registrant or operator", "operator")
    .option("--namespace <name>", "where it counts, * for everywhere (default: default)", collect)
    .option("--server <pattern>", "a registrant's server_ids, such as billing-* (default: all)", collect)
    .option("--expires <time>", "when it ends, such as 2027-01-01T00:00:00Z (default: never)")
    .option("--add <file>", "put its entry into this tokens file, made if absent; the token alone is printed");
  const command = withJson(fresh).action((options: NewOptions) => make(io, options));
  return new Command("token").description("credentials for callers").addCommand(command);
}

function make(io: Io, options: NewOptions): void {
  const { principal, role, namespace = ["default"], server, expires } = options;
  const wanted = [{ role, namespaces: namespace, ...(server && { servers: server }) }];
  const grants = readGrants("grants", wanted);
  const problems = [...principalProblems("--principal", principal), ...(grants.ok ? [] : grants.problems)];
  if (expires !== undefined && !(Date.parse(expires) > Date.now())) problems.push("--expires must be a time to come");
  if (problems.length > 0) throw new CommandError(problems.join("\n"), 2);
  const token = `${PREFIX}${randomBytes(TOKEN_BYTES).toString("base64url")}`;
  const sha256 = createHash("sha256").update(token).digest("hex");
  const entry = {
    sha256,
    principal,
    grants: wanted,
    ...(expires !== undefined && { expires: new Date(expires).toISOString() }),
  };
  if (options.add !== undefined) addEntry(options.add, entry);
  if (options.json) return line(io.stdout, JSON.stringify({ token, entry }));
  line(
    io.stderr,
    "The token, shown this once. Its user sets it as TOOLCRIB_TOKEN, or writes it to a file named by TOOLCRIB_TOKEN_FILE:",
  );
  line(io.stdout, token);
  if (options.add !== undefined) return line(io.stderr, `Its entry, a hash of it, is in ${options.add} now.`);
  line(io.stderr, 'The entry for the "tokens" list of the file that the registry is started with (--tokens-file):');
  line(io.stderr, JSON.stringify(entry, null, 2));
}

/** Throws CommandError, with the file as it was, where it cannot be read as a tokens file or not be written. */
function addEntry(path: string, entry: object): void {
  const tokens = existsSync(path) ? entriesOf(path) : [];
  const fresh = `${path}.new`;
  try {
    writeFileSync(fresh, `${JSON.stringify({ tokens: [...tokens, entry] }, null, 2)}\n`, { mode: 0o600 });
    // A file that others may read, such as the registry's own user, stays theirs to read.
    if (existsSync(path)) chmodSync(fresh, statSync(path).mode & 0o777);
    renameSync(fresh, path);
  } catch (error) {
    rmSync(fresh, { force: true });
    throw new CommandError(`${path} cannot be written: ${(error as NodeJS.ErrnoException).code ?? String(error)}`);
  }
}

function entriesOf(path: string): readonly unknown[] {
  let whole: unknown;
  try {
    whole = JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code ?? "it is not JSON";
    throw new CommandError(`${path} cannot be read as a tokens file: ${why}; nothing was changed`);
  }
  const { tokens } = (whole ?? {}) as { readonly tokens?: unknown };
  if (Array.isArray(tokens)) return tokens;
  throw new CommandError(`${path} is no tokens file: it needs {"tokens": […]}; nothing was changed`);
}
