/** Who calls, and what they may do. Tenants are namespaces; rights are grants in them. */

export const ROLES = ["reader", "registrant", "operator"] as const;
/** Each role may do what the ones before it may. */
export type Role = (typeof ROLES)[number];

/** `read` lists, loads and watches; `register` registers, renews and deregisters what is one's own; `operate` touches others' too. */
export type Action = "read" | "register" | "operate";

export interface Grant {
  readonly role: Role;
  /** Names, or `*` for all. */
  readonly namespaces: readonly string[];
  /** A registrant's server_ids, each a pattern in which `*` stands for any text; absent: all. Binds registering, not reading. */
  readonly servers?: readonly string[];
}

/** An identified caller. */
export interface Principal {
  readonly id: string;
  readonly grants: readonly Grant[];
  /** When the credential ends, ms since 1970; absent: when it is taken away. */
  readonly expiresAtMs?: number;
}

/** Every caller of a registry that identifies nobody: one principal who may do everything. */
export const EVERYBODY: Principal = Object.freeze({
  id: "anonymous",
  grants: [{ role: "operator", namespaces: ["*"] }] as const,
});

const NEEDED: Readonly<Record<Action, Role>> = { read: "reader", register: "registrant", operate: "operator" };

/** Without a server_id: whether there is any server in the namespace on which the principal may do it. */
export function may(principal: Principal, action: Action, namespace: string, serverId?: string): boolean {
  return principal.grants.some(
    (grant) =>
      ROLES.indexOf(grant.role) >= ROLES.indexOf(NEEDED[action]) &&
      (grant.namespaces.includes("*") || grant.namespaces.includes(namespace)) &&
      (action === "read" || serverId === undefined || coversServer(grant, serverId)),
  );
}

/** Whether the principal may touch what `owner` registered first. What was registered while nobody was identified is nobody's. */
export function mayTouch(principal: Principal, owner: string, namespace: string): boolean {
  return isNobody(owner) || owner === principal.id || may(principal, "operate", namespace);
}

/** Whether the principal may change or remove this server. */
export function mayChange(principal: Principal, owner: string, namespace: string, serverId: string): boolean {
  return may(principal, "register", namespace, serverId) && mayTouch(principal, owner, namespace);
}

/** The owner of a server after `principal` registered it: the first one stays. */
export function ownerAfter(owner: string, principal: Principal): string {
  return isNobody(owner) ? principal.id : owner;
}

function isNobody(owner: string): boolean {
  return owner === "" || owner === EVERYBODY.id;
}

function coversServer({ servers }: Grant, serverId: string): boolean {
  return servers === undefined || servers.some((pattern) => matches(pattern, serverId));
}

/** Linear in the text for each `*`; a pattern can never take long. */
export function matches(pattern: string, text: string): boolean {
  const parts = pattern.split("*");
  const first = parts[0] ?? "";
  if (parts.length === 1) return pattern === text;
  const last = parts[parts.length - 1] ?? "";
  if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last)) return false;
  let at = first.length;
  const end = text.length - last.length;
  for (const part of parts.slice(1, -1)) {
    const found = text.indexOf(part, at);
    if (found < 0 || found + part.length > end) return false;
    at = found + part.length;
  }
  return true;
}
