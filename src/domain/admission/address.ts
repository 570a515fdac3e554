/** What an IP address is: decided from its bits alone, before anything is sent to it. */
import ipaddr from "ipaddr.js";

/** Each reads well before "address". */
export type AddressClass =
  | "public"
  | "loopback"
  | "private"
  | "link-local"
  | "carrier-grade NAT"
  | "multicast"
  | "broadcast"
  | "documentation"
  | "reserved"
  | "unspecified"
  | "cloud metadata";

/** One address that packets may reach, in its canonical spelling (RFC 5952; an IPv4-mapped one as IPv4). */
export interface Face {
  readonly address: string;
  readonly class: AddressClass;
}

export interface Network {
  readonly ip: Ip;
  readonly bits: number;
}

type Ip = ipaddr.IPv4 | ipaddr.IPv6;
type Range = readonly [AddressClass, Network];

/** The first range that holds an address names its class; below are IANA's special-purpose registries, most exact first. */
const RANGES_4: readonly Range[] = ranges([
  // Link-local services of clouds: instance metadata, task credentials, pod identity, resolvers.
  ["cloud metadata", "169.254.169.0/24 169.254.170.0/24 169.254.42.42/32 169.254.0.23/32"],
  // Alibaba, Azure's wire server, Oracle classic: inside ranges that otherwise mean something else.
  ["cloud metadata", "100.100.100.200/32 168.63.129.16/32 192.0.0.192/32"],
  ["unspecified", "0.0.0.0/32"],
  ["reserved", "0.0.0.0/8"],
  ["loopback", "127.0.0.0/8"],
  ["private", "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16"],
  ["link-local", "169.254.0.0/16"],
  ["carrier-grade NAT", "100.64.0.0/10"],
  ["documentation", "192.0.2.0/24 198.51.100.0/24 203.0.113.0/24"],
  // Protocol assignments, the withdrawn 6to4 relay, benchmarking.
  ["reserved", "192.0.0.0/24 192.88.99.0/24 198.18.0.0/15"],
  ["multicast", "224.0.0.0/4"],
  ["broadcast", "255.255.255.255/32"],
  ["reserved", "240.0.0.0/4"],
  ["public", "0.0.0.0/0"],
]);

const RANGES_6: readonly Range[] = ranges([
  ["cloud metadata", "fd00:ec2::/32 fd20:ce::254/128 fd00:42::42/128 fd00:c1::a9fe:a9fe/128 fe80::a9fe:a9fe/128"],
  ["unspecified", "::/128"],
  ["loopback", "::1/128"],
  // Unique local, withdrawn site-local, and NAT64 with a prefix of one's own.
  ["private", "fc00::/7 fec0::/10 64:ff9b:1::/48"],
  ["link-local", "fe80::/10"],
  ["multicast", "ff00::/8"],
  ["documentation", "2001:db8::/32 3fff::/20"],
  // Protocol assignments, Teredo among them.
  ["reserved", "2001::/23"],
  ["public", "64:ff9b::/96 2000::/3"],
  ["reserved", "::/0"],
]);

/** Bytes in which an IPv6 address carries an IPv4 one. */
interface Carrier {
  readonly network: Network;
  readonly at: readonly (readonly [number, number, number, number])[];
  readonly inverted?: true;
  /** 0.x.x.x there means that it carries none. */
  readonly zeroIsNone?: true;
}

const LAST: Carrier["at"] = [[12, 13, 14, 15]];

const CARRIERS: readonly Carrier[] = [
  { network: network("::/96"), at: LAST, zeroIsNone: true },
  { network: network("::ffff:0:0:0/96"), at: LAST },
  { network: network("64:ff9b::/96"), at: LAST },
  // The translator's prefix may be 48, 56, 64 or 96 bits long, and only the translator knows (RFC 6052).
  {
    network: network("64:ff9b:1::/48"),
    at: [[6, 7, 9, 10], [7, 9, 10, 11], [9, 10, 11, 12], [12, 13, 14, 15]],
    zeroIsNone: true,
  },
  { network: network("2002::/16"), at: [[2, 3, 4, 5]] },
  // Teredo: its server, and its client with all bits inverted.
  { network: network("2001::/32"), at: [[4, 5, 6, 7]] },
  { network: network("2001::/32"), at: LAST, inverted: true },
];

/**
 * Every address that a packet to this one may reach: itself first, then the IPv4 addresses it carries (6to4, Teredo, NAT64,
 * compatible and translated forms). Takes canonical spellings, as URLs and resolvers give them; undefined = no address.
 */
export function facesOf(text: string): readonly Face[] | undefined {
  const ip = parse(text);
  return ip && [ip, ...carriedBy(ip)].map((one) => ({ address: spelled(one), class: classOf(one) }));
}

/** The one spelling of an address; undefined = no address. */
export function canonicalAddress(text: string): string | undefined {
  const ip = parse(text);
  return ip && spelled(ip);
}

export function holds({ ip, bits }: Network, text: string): boolean {
  const other = parse(text);
  return other !== undefined && within(other, { ip, bits });
}

/** A network in CIDR notation, or one address; a sentence's end when it is neither. */
export function readNetwork(text: string): Network | string {
  const [address = "", length, ...rest] = text.split("/");
  const ip = parse(address);
  if (!ip || rest.length > 0) return "is no network such as 10.0.0.0/8 or fd00::/8";
  const size = ip.kind() === "ipv4" ? 32 : 128;
  if (length === undefined) return { ip, bits: size };
  if (ip.kind() === "ipv4" && address.includes(":")) return "is an IPv4 network in IPv6 spelling: write it as IPv4";
  const bits = Number(length);
  if (!/^\d{1,3}$/.test(length) || bits > size) return `has no length from 0 to ${size} after the slash`;
  const first = firstOf(ip, bits);
  if (spelled(first) === spelled(ip)) return { ip, bits };
  return `has bits set beyond its length: the network is ${spelled(first)}/${bits}, the address ${spelled(ip)}`;
}

/** Brackets and a zone are taken off; other spellings of IPv4 than four decimal numbers are left to URL parsers. */
function parse(text: string): Ip | undefined {
  const bare = text.replace(/^\[(.*)\]$/, "$1").replace(/%.*$/s, "");
  if (ipaddr.IPv4.isValidFourPartDecimal(bare)) return ipaddr.IPv4.parse(bare);
  const url = `http://[${bare}]/`;
  if (!/^[0-9A-Fa-f:.]+$/.test(bare) || !URL.canParse(url)) return undefined;
  const ip = ipaddr.IPv6.parse(new URL(url).hostname.slice(1, -1));
  return ip.isIPv4MappedAddress() ? ip.toIPv4Address() : ip;
}

function spelled(ip: Ip): string {
  return ip.kind() === "ipv4" ? ip.toString() : (ip as ipaddr.IPv6).toRFC5952String();
}

function classOf(ip: Ip): AddressClass {
  const found = (ip.kind() === "ipv4" ? RANGES_4 : RANGES_6).find(([, range]) => within(ip, range));
  return found?.[0] ?? "reserved";
}

function carriedBy(ip: Ip): Ip[] {
  if (ip.kind() === "ipv4") return [];
  const bytes = ip.toByteArray();
  return CARRIERS.filter(({ network: range }) => within(ip, range)).flatMap(({ at, inverted, zeroIsNone }) => {
    const found = at.map((places) => places.map((place) => (bytes[place] ?? 0) ^ (inverted ? 0xff : 0)));
    // Of several places those that are not used read as zeros; a wrong one that reads otherwise can only forbid.
    const used = zeroIsNone ? found.filter(([first]) => first !== 0) : found;
    return used.map((octets) => new ipaddr.IPv4(octets));
  });
}

function within(ip: Ip, { ip: base, bits }: Network): boolean {
  return ip.kind() === base.kind() && ip.match(base, bits);
}

function firstOf(ip: Ip, bits: number): Ip {
  const bytes = ip.toByteArray();
  return ipaddr.fromByteArray(bytes.map((byte, i) => byte & (0xff00 >> Math.min(8, Math.max(0, bits - 8 * i)))));
}

function network(text: string): Network {
  const [ip, bits] = ipaddr.parseCIDR(text);
  return { ip, bits };
}

function ranges(rows: readonly (readonly [AddressClass, string])[]): readonly Range[] {
  return rows.flatMap(([name, texts]) => texts.split(" ").map((text): Range => [name, network(text)]));
}
