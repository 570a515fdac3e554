/** The operator's credentials for MCP servers. A value leaves this room in the header of a request, and in no other way. */
import { readFile } from "node:fs/promises";
import { dirname } from "node:path";
import type { Logger } from "../../catalogue/ports.js";
import { type CredentialUse, UpstreamError } from "../../catalogue/upstream-port.js";
import { plainTextDenial, targetOf } from "../../domain/admission/egress.js";
import { watchFiles } from "../../files/watched-file.js";
import { type Credential, type CredentialSet, type Env, fileValue, readCredentials, valueProblem } from "./file.js";

/** One header, as it is sent. */
export interface Shown {
  readonly header: string;
  readonly text: string;
  /** The part of it that nobody else may learn. */
  readonly secret: string;
}

export interface Credentials {
  /** Why it may not be shown to this endpoint; undefined = it may, as far as the URL tells. */
  refusal(endpoint: string, use: CredentialUse): string | undefined;
  /** What this endpoint is shown. Throws UpstreamError. */
  show(endpoint: string, use: CredentialUse): Promise<Shown>;
  close(): void;
}

/** Of a registry without a credentials file. */
export const NO_CREDENTIALS: Credentials = credentialsOf({ value: new Map(), close: () => undefined });

/** Reads the file now, and again when it changes. Throws an Error with everything that is wrong when it cannot be used at the start. */
export function watchCredentials(path: string, env: Env, log: Logger): Credentials {
  return credentialsOf(
    watchFiles({
      what: "the upstream credentials file",
      paths: [path],
      parse: ([content]) => readCredentials(content ?? Buffer.alloc(0), env, dirname(path)),
      log,
    }),
  );
}

export function credentialsOf(set: { readonly value: CredentialSet; close(): void }): Credentials {
  const find = (endpoint: string, use: CredentialUse): Credential | string => {
    const found = set.value.get(use.name);
    // A foreign one reads like one that is not there: its existence is its own namespace's business.
    if (!found?.namespaces.some((one) => one === "*" || one === use.namespace)) return unknown(use);
    return wrongPlace(found, endpoint) ?? found;
  };
  return {
    refusal(endpoint, use) {
      const found = find(endpoint, use);
      return typeof found === "string" ? found : undefined;
    },
    async show(endpoint, use) {
      const found = find(endpoint, use);
      if (typeof found === "string") throw new UpstreamError("credential", found);
      const secret = await secretOf(found);
      return { header: found.header, text: `${found.prefix}${secret}`, secret };
    },
    close: () => set.close(),
  };
}

function unknown({ name, namespace }: CredentialUse): string {
  return (
    `there is no upstream credential ${name} for namespace ${namespace}: ` +
    "credentials are defined by the registry's operator in --upstream-credentials (TOOLCRIB_UPSTREAM_CREDENTIALS)"
  );
}

function wrongPlace({ name, hosts }: Credential, endpoint: string): string | undefined {
  if (!URL.canParse(endpoint)) return "the endpoint is no URL";
  const url = new URL(endpoint);
  const target = targetOf(url);
  if (!hosts.some((host) => (host.startsWith(".") ? target.host.endsWith(host) : target.host === host))) {
    return `the upstream credential ${name} may not be shown to ${target.host}: its operator lists hosts, and this is none of them`;
  }
  return url.protocol === "https:" ? undefined : plainTextDenial(target, target.host);
}

async function secretOf({ name, source }: Credential): Promise<string> {
  if (source.kind === "env") return source.value;
  let problem: string | undefined;
  try {
    const value = fileValue(await readFile(source.path));
    problem = valueProblem(value);
    if (problem === undefined) return value;
  } catch (error) {
    problem = `cannot be read (${(error as NodeJS.ErrnoException).code ?? "unreadable"})`;
  }
  throw new UpstreamError("credential", `the file of the upstream credential ${name} ${problem}`);
}
