import { endpointViolations } from "../../domain/admission/endpoint.js";
import { CommandError } from "../io.js";
import type { Entry, Texts } from "./config-file.js";
import type { Expanded } from "./placeholders.js";
import { expand, holdsPlaceholder } from "./placeholders.js";
import type { SecretHeader } from "./secret-header.js";
import { planHeaders } from "./secret-header.js";
import { serverIdsFor } from "./server-ids.js";

interface Named {
  readonly name: string;
  readonly serverId: string;
  /** Sentences for the summary. */
  readonly notes: readonly string[];
}

export interface RegisterTask extends Named {
  readonly kind: "register";
  readonly url: string;
  readonly sse: boolean;
  readonly secret: SecretHeader | undefined;
}

export interface WrapTask extends Named {
  readonly kind: "wrap";
  readonly command: string;
  readonly args: readonly string[];
  /** Beside what is inherited; values may be secret. */
  readonly env: Texts;
  readonly cwd: string | undefined;
}

/** The notes say why. */
export interface SkipTask extends Named {
  readonly kind: "skip";
}

export type Task = RegisterTask | WrapTask | SkipTask;

/** Throws CommandError for a name that the file does not hold. */
export function selectEntries(entries: readonly Entry[], only: readonly string[]): readonly Entry[] {
  const names = entries.map(({ name }) => name);
  const unknown = only.filter((name) => !names.includes(name));
  if (unknown.length > 0) {
    throw new CommandError(
      `the file has no ${unknown.join(", ")}; it has ${names.join(", ") || "no server at all"}`,
      2,
    );
  }
  return only.length === 0 ? entries : entries.filter(({ name }) => only.includes(name));
}

/** What is to be done for each entry, in the order of the file. The ids come from all entries, so `--only` changes none. */
export function planTasks(all: readonly Entry[], chosen: readonly Entry[], env: NodeJS.ProcessEnv): Task[] {
  const ids = new Map(serverIdsFor(all.map(({ name }) => name)).map((id) => [id.name, id]));
  return chosen.map((entry) => {
    const id = ids.get(entry.name);
    const named = { name: entry.name, serverId: id?.serverId ?? "", notes: id?.note ? [id.note] : [] };
    switch (entry.kind) {
      case "unusable":
        return skip(named, [entry.why]);
      case "url":
        return planUrl(named, entry, env);
      case "command":
        return planCommand(named, entry, env);
    }
  });
}

function skip(named: Named, why: readonly string[]): SkipTask {
  return { ...named, kind: "skip", notes: [...named.notes, ...why] };
}

function planUrl(named: Named, entry: Entry & { kind: "url" }, env: NodeJS.ProcessEnv): Task {
  const authority = /^[a-z]+:\/\/[^/?#]*/i.exec(entry.url)?.[0] ?? "";
  if (holdsPlaceholder(entry.url.slice(authority.length))) {
    return skip(named, [
      "its URL takes a variable in its path or query, and every reader of the namespace would see the value: write it in the file if it is no secret",
    ]);
  }
  const url = expand(entry.url, env);
  if (!url.ok) return skip(named, url.why);
  const wrong = endpointViolations("url", url.text);
  if (wrong.length > 0)
    return skip(
      named,
      wrong.map(({ description }) => `its URL ${description}`),
    );
  const { secret, notes } = planHeaders(entry.headers);
  return { ...named, kind: "register", url: url.text, sse: entry.sse, secret, notes: [...named.notes, ...notes] };
}

function planCommand(named: Named, entry: Entry & { kind: "command" }, env: NodeJS.ProcessEnv): Task {
  const command = expand(entry.command, env);
  const args = entry.args.map((arg) => expand(arg, env));
  const variables = Object.entries(entry.env).map(([name, value]) => [name, expand(value, env)] as const);
  const cwd = expand(entry.cwd ?? "", env);
  const missing = [command, ...args, ...variables.map(([, value]) => value), cwd].flatMap((e) => (e.ok ? [] : e.why));
  if (missing.length > 0) return skip(named, [...new Set(missing)]);
  return {
    ...named,
    kind: "wrap",
    command: textOf(command),
    args: args.map(textOf),
    env: Object.fromEntries(variables.map(([name, value]) => [name, textOf(value)])),
    cwd: textOf(cwd) || undefined,
  };
}

function textOf(expanded: Expanded): string {
  return expanded.ok ? expanded.text : "";
}
