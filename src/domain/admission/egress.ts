/** Which MCP servers may be dialled: by URL before anything is looked up, and by address before anything is sent. */
import { type AddressClass, canonicalAddress, type Face, facesOf, holds, type Network, readNetwork } from "./address.js";
import { forbiddenPort } from "./ports.js";
import { quoted } from "./text.js";

/** What an operator lists beyond the default. */
export interface AllowList {
  readonly networks: readonly Network[];
  /** As URLs spell them; `.example.internal` stands for every name below it. */
  readonly names: readonly string[];
}

/** Something that no MCP server can be: a listener of the registry, or its store. */
export interface Own {
  /** "the registry's own gRPC listener". */
  readonly what: string;
  /** Address or name, with or without brackets. */
  readonly host: string;
  readonly port: number;
}

export interface EgressPolicy {
  /** Open: loopback and private addresses are dialled without being listed. */
  readonly inside: "open" | "closed";
  readonly allow: AllowList;
  /** Asked at each check: ports are known once they are bound. */
  own(): readonly Own[];
  /** Addresses of this machine's interfaces, for listeners that are bound to all of them. */
  machine(): readonly string[];
}

/** The part of an endpoint that decides: `host` as a URL spells it, without brackets or a final dot. */
export interface Target {
  readonly host: string;
  readonly port: number;
}

const SETTING = "--egress-allow (TOOLCRIB_EGRESS_ALLOW)";

/** Classes to which no server can belong, whatever a list says. */
const NEVER: ReadonlySet<AddressClass> = new Set(["cloud metadata", "unspecified", "multicast", "broadcast"]);

/** The names by which clouds serve credentials of the machine. The addresses behind them are known as well. */
const METADATA_NAMES = [
  "metadata.google.internal",
  "metadata.goog",
  "instance-data.ec2.internal",
  "metadata.tencentyun.com",
  "metadata.azure.internal",
];

/** Reads a comma list of networks, addresses, names and `*.names`; otherwise says what is wrong, everything at once. */
export function readAllowList(text: string): AllowList | { readonly problems: readonly string[] } {
  const networks: Network[] = [];
  const names: string[] = [];
  const problems: string[] = [];
  for (const entry of text.split(",").map((part) => part.trim())) {
    if (entry === "") continue;
    const read = readEntry(entry);
    if (read.kind === "network") networks.push(read.network);
    else if (read.kind === "name") names.push(read.name);
    else problems.push(`${quoted(entry, 100)} ${read.why}`);
  }
  return problems.length > 0 ? { problems } : { networks, names };
}

export function targetOf(url: URL): Target {
  const port = url.port !== "" ? Number(url.port) : url.protocol === "https:" ? 443 : 80;
  return { host: url.hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.$/, ""), port };
}

/** The policy for one URL that the operator gave himself: its host counts as listed, and nothing else does. */
export function alsoAllowing(policy: EgressPolicy, url: string): EgressPolicy {
  return { ...policy, allow: { networks: [], names: [targetOf(new URL(url)).host] } };
}

/**
 * Why an endpoint is not dialled, as far as its text tells; undefined = nothing is known against it. A name still has to
 * show its addresses. The sentence names the host and repeats neither path nor query, which may hold secrets.
 */
export function endpointDenial(policy: EgressPolicy, endpoint: string): string | undefined {
  if (!URL.canParse(endpoint)) return "the endpoint is no URL";
  const url = new URL(endpoint);
  if (url.username !== "" || url.password !== "") return "the endpoint holds a user name or password: remove it";
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    return `only http and https are dialled, not ${quoted(url.protocol.slice(0, -1), 100)}`;
  }
  const target = targetOf(url);
  const service = forbiddenPort(target.port);
  if (service !== undefined) {
    return `${target.host}: port ${target.port} (${service}) is never dialled; let the server listen on another port`;
  }
  if (METADATA_NAMES.some((name) => isOrBelow(target.host, name))) return denial(target, "is", "cloud metadata");
  if (canonicalAddress(target.host) !== undefined) return addressDenial(policy, target, target.host);
  const own = policy.own().find((one) => one.port === target.port && plain(one.host) === target.host);
  if (own) return ownDenial(target, own);
  return isLocalName(target.host) ? localNameDenial(policy, target) : undefined;
}

/**
 * Why an address of the target is not dialled. `more` are own things whose names were looked up. What a name resolves to
 * is not repeated: the class is enough to act on, and an inside network's plan is nobody's business.
 */
export function addressDenial(
  policy: EgressPolicy,
  target: Target,
  address: string,
  more: readonly Own[] = [],
): string | undefined {
  const faces = facesOf(address);
  if (!faces) return `${target.host} has an address that cannot be understood, so it is not dialled`;
  const own = [...policy.own(), ...more].filter((one) => one.port === target.port);
  for (const face of faces) {
    const mine = own.find((one) => isAt(one, face, policy));
    if (mine) return ownDenial(target, mine);
  }
  const refused = faces.filter((face) => !permitted(policy, target, face));
  const worst = refused.find((face) => NEVER.has(face.class)) ?? refused[0];
  if (!worst) return undefined;
  const named = canonicalAddress(target.host) === undefined;
  return denial(target, named ? "resolves to" : worst === faces[0] ? "is" : "carries", worst.class);
}

/**
 * Why a secret is not sent in plain text to this address of the target; undefined = it may be, or `address` is a name that
 * still has to show its addresses.
 */
export function plainTextDenial(target: Target, address: string): string | undefined {
  const open = facesOf(address)?.find((face) => face.class !== "loopback" && face.class !== "private");
  if (!open) return undefined;
  const is = canonicalAddress(target.host) === undefined ? "resolves to" : "is";
  return (
    `credentials are sent over https, and over http to loopback and private addresses alone; ` +
    `${target.host} ${is} a ${open.class} address: let the server speak https`
  );
}

/** `localhost` and names below it, which mean this machine (RFC 6761). Resolvers may still send them elsewhere. */
export function isLocalName(host: string): boolean {
  return isOrBelow(host, "localhost");
}

function permitted({ inside, allow }: EgressPolicy, { host }: Target, { address, class: is }: Face): boolean {
  if (NEVER.has(is)) return false;
  if (is === "public" || (inside === "open" && (is === "loopback" || is === "private"))) return true;
  return allow.names.some((name) => matches(host, name)) || allow.networks.some((network) => holds(network, address));
}

/** What can be said of a local name without a lookup: whether neither of this machine's loopback addresses would do. */
function localNameDenial(policy: EgressPolicy, target: Target): string | undefined {
  const mine = policy.own().find((one) => one.port === target.port && isLoopbackOnly(one));
  if (mine) return ownDenial(target, mine);
  const denials = ["127.0.0.1", "::1"].map((address) => addressDenial(policy, target, address));
  return denials.includes(undefined) ? undefined : denials[0];
}

function isLoopbackOnly({ host }: Own): boolean {
  const address = canonicalAddress(host);
  return address === "127.0.0.1" || address === "::1" || isLocalName(plain(host));
}

function isAt(own: Own, { address, class: is }: Face, policy: EgressPolicy): boolean {
  const host = canonicalAddress(own.host);
  if (host === undefined) return isLocalName(plain(own.host)) && (address === "127.0.0.1" || address === "::1");
  if (host !== "0.0.0.0" && host !== "::") return host === address;
  return is === "loopback" || policy.machine().some((one) => canonicalAddress(one) === address);
}

function ownDenial({ host, port }: Target, { what }: Own): string {
  return `${host} with port ${port} is ${what}, which is never dialled as an MCP server`;
}

function denial({ host }: Target, verb: string, is: AddressClass): string {
  const article = /^[aeiou]/.test(is) ? "an" : "a";
  const found = `${host} ${verb} ${article} ${is} address`;
  if (NEVER.has(is)) return `${found}, which is never dialled, whatever the settings say`;
  return (
    `${found}, and this registry dials those only where its operator allows it: add ${canonicalAddress(host) ?? host} or its network to ` +
    `${SETTING}, or let the server register its definitions inline`
  );
}

type Entry =
  | { readonly kind: "network"; readonly network: Network }
  | { readonly kind: "name"; readonly name: string }
  /** The end of a sentence that begins with the entry. */
  | { readonly kind: "wrong"; readonly why: string };

function readEntry(entry: string): Entry {
  const addressed = entry.includes("/") || canonicalAddress(entry) !== undefined;
  return addressed ? readNetworkEntry(entry) : readNameEntry(entry);
}

function readNetworkEntry(entry: string): Entry {
  const network = readNetwork(entry);
  if (typeof network === "string") return { kind: "wrong", why: network };
  const only = entry.includes("/") ? undefined : facesOf(entry)?.find((face) => NEVER.has(face.class));
  if (only) return { kind: "wrong", why: `is a ${only.class} address, which is never dialled` };
  return { kind: "network", network };
}

function readNameEntry(entry: string): Entry {
  const below = entry.startsWith("*.");
  const name = plain(below ? entry.slice(2) : entry);
  const url = `http://${name}/`;
  if (!/^[^\s/:?#@\\*%[\]]+$/.test(name) || !URL.canParse(url)) {
    return { kind: "wrong", why: "is neither a network, an address, a host name nor *.name" };
  }
  const { hostname } = new URL(url);
  if (canonicalAddress(hostname) !== undefined) {
    return { kind: "wrong", why: `is an address in an unusual spelling: write ${hostname}` };
  }
  if (METADATA_NAMES.some((known) => isOrBelow(hostname, known))) {
    return { kind: "wrong", why: "names a cloud metadata service, which is never dialled" };
  }
  return { kind: "name", name: below ? `.${hostname}` : hostname };
}

function matches(host: string, name: string): boolean {
  return name.startsWith(".") ? host.endsWith(name) : host === name;
}

function isOrBelow(host: string, name: string): boolean {
  return host === name || host.endsWith(`.${name}`);
}

/** A host name as URLs spell it. */
function plain(host: string): string {
  return host.toLowerCase().replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "");
}
