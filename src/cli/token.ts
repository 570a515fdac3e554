import { createHash, randomBytes } from "node:crypto";
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
    .option("--expires <time>", "when it ends, such as 2027-01-01T00:00:00Z (default: never)");
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
  if (options.json) return line(io.stdout, JSON.stringify({ token, entry }));
  line(
    io.stderr,
    "The token, shown this once. Its user sets it as TOOLCRIB_TOKEN, or writes it to a file named by TOOLCRIB_TOKEN_FILE:",
  );
  line(io.stdout, token);
  line(io.stderr, 'The entry for the "tokens" list of the file that the registry is started with (--tokens-file):');
  line(io.stderr, JSON.stringify(entry, null, 2));
}
