/** Which credential a server is shown: the one that it is registered with, or, where the operator says so, its callers' own. */
import { canonicalAddress } from "../../domain/admission/address.js";
import { serverKey } from "../../domain/ids.js";
import { isFreeHeader, type OwnCredential, ownCredentialProblem } from "../../upstream/caller.js";
import type { CallerCredential, CallerCredentialRule } from "./api.js";

type Rules = ReadonlyMap<string, Required<CallerCredentialRule>>;

export type ShownCredential =
  | { readonly kind: "registered" }
  | { readonly kind: "own"; readonly own: OwnCredential }
  | { readonly kind: "refused"; readonly text: string };

/** Throws an Error that names everything that is wrong. */
export function readRules(rules: readonly CallerCredentialRule[]): Rules {
  const problems: string[] = [];
  const found = new Map<string, Required<CallerCredentialRule>>();
  for (const { namespace, serverId, hosts, header = "authorization" } of rules) {
    const key = serverKey(namespace, serverId);
    if (found.has(key)) problems.push(`server ${key} is named twice`);
    if (hosts.length === 0) problems.push(`server ${key} names no host that may see its callers' credentials`);
    for (const host of hosts) if (!isHost(host)) problems.push(`server ${key}: ${JSON.stringify(host)} is no host name as URLs spell it`);
    if (!isFreeHeader(header)) problems.push(`server ${key}: ${JSON.stringify(header)} is no header, in lower case, that may hold a credential`);
    found.set(key, { namespace, serverId, hosts, header });
  }
  if (problems.length > 0) throw new Error(`callers' credentials: ${problems.join("; ")}`);
  return found;
}

/** A credential that a caller sends along is shown to the servers with a rule, and dropped for all others. */
export function credentialFor(rules: Rules, namespace: string, serverId: string, given: CallerCredential | undefined): ShownCredential {
  const rule = rules.get(serverKey(namespace, serverId));
  if (!rule) return { kind: "registered" };
  // The operator's would make every caller as mighty as the operator.
  if (!given) return { kind: "refused", text: `server ${serverId} is shown its callers' own credentials, and this call brought none: send yours along` };
  const problem = ownCredentialProblem(given.value);
  if (problem !== undefined) return { kind: "refused", text: `the credential that came along for server ${serverId} ${problem}` };
  const use = { name: "of-the-caller", namespace, sharePrivate: false };
  return { kind: "own", own: { use, header: rule.header, value: given.value, hosts: rule.hosts } };
}

function isHost(text: string): boolean {
  const name = text.startsWith(".") ? text.slice(1) : text;
  const bare = canonicalAddress(name) === undefined ? name : name.includes(":") ? `[${name}]` : name;
  const url = `http://${bare}/`;
  return URL.canParse(url) && new URL(url).hostname === bare;
}
