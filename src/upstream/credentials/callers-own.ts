/** A credential that a caller brings along for one server. It is treated as an operator's: the same hosts, the same guard. */
import type { CredentialUse } from "../../catalogue/upstream-port.js";
import { type Credentials, credentialsOf } from "./credentials.js";
import { isFreeHeader, valueProblem } from "./file.js";

export { isFreeHeader };

export interface OwnCredential {
  /** Name for messages, and whose it is. */
  readonly use: CredentialUse;
  /** Lower case. */
  readonly header: string;
  /** The whole value of the header. */
  readonly value: string;
  /** Who may see it, as `Credential.hosts`. */
  readonly hosts: readonly string[];
}

export function callersOwn({ use, header, value, hosts }: OwnCredential): Credentials {
  const { prefix, secret } = partsOf(value);
  const source = { kind: "env", variable: "", value: secret } as const;
  const credential = { name: use.name, namespaces: [use.namespace], header, prefix, hosts, source };
  return credentialsOf({ value: new Map([[use.name, credential]]), close: () => undefined });
}

/** What is wrong with the value of a header; it is not repeated. */
export function ownCredentialProblem(value: string): string | undefined {
  return valueProblem(partsOf(value).secret);
}

/** `Bearer x` is a scheme and a secret; anything else is all secret. */
function partsOf(value: string): { readonly prefix: string; readonly secret: string } {
  const scheme = /^[A-Za-z][A-Za-z0-9-]{0,31} +/.exec(value)?.[0] ?? "";
  return { prefix: scheme, secret: value.slice(scheme.length) };
}
