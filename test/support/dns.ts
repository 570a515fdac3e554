/** A DNS server on loopback that answers what a test wants, and a resolver that asks nobody else. */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import type { LookupAddress } from "node:dns";
import { Resolver } from "node:dns/promises";
import { isIPv4 } from "node:net";
import type { AddressInfo } from "node:net";
import ipaddr from "ipaddr.js";
import { onTestFinished } from "vitest";
import type { Resolve } from "../../src/upstream/egress.js";

export interface DnsServer {
  /** Name → its addresses now. A name that is not here does not exist. */
  readonly records: Map<string, readonly string[] | (() => readonly string[])>;
  /** Names asked for so far, one for each question about IPv4. */
  readonly asked: readonly string[];
  /** As `dns.lookup` with `all`, but by this server alone. */
  readonly resolve: Resolve;
}

/** Closed when the test ends. */
export async function startDns(records: Readonly<Record<string, readonly string[] | (() => readonly string[])>>): Promise<DnsServer> {
  const known = new Map(Object.entries(records));
  const asked: string[] = [];
  const socket = createSocket("udp4");
  socket.on("message", (query, peer) => {
    const { name, type } = question(query);
    if (type === A) asked.push(name);
    const record = known.get(name);
    // Both families of one change are answered from the same state: only the question about IPv4 moves it on.
    const all = typeof record === "function" ? (type === A ? record() : []) : record;
    const found = all?.filter((address) => isIPv4(address) === (type === A));
    socket.send(answer(query, type, found), peer.port, peer.address);
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  onTestFinished(() => void socket.close());

  const resolver = new Resolver({ timeout: 5_000, tries: 2 });
  resolver.setServers([`127.0.0.1:${(socket.address() as AddressInfo).port}`]);
  const addressesOf = async (hostname: string): Promise<LookupAddress[]> => {
    const [four, six] = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
    const found = [
      ...(four.status === "fulfilled" ? four.value.map((address) => ({ address, family: 4 })) : []),
      ...(six.status === "fulfilled" ? six.value.map((address) => ({ address, family: 6 })) : []),
    ];
    if (found.length === 0 && four.status === "rejected") throw four.reason;
    return found;
  };
  const resolve: Resolve = (hostname, _options, callback) => {
    addressesOf(hostname).then(
      (addresses) => callback(null, addresses),
      (error: NodeJS.ErrnoException) => callback(error, []),
    );
  };
  return { records: known, asked, resolve };
}

const A = 1;
const HEADER = 12;
const NXDOMAIN = 3;

function question(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = HEADER;
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join(".").toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 };
}

function answer(query: Buffer, type: number, addresses: readonly string[] | undefined): Buffer {
  const { end } = question(query);
  const head = Buffer.from(query.subarray(0, end));
  // An authoritative answer to one question, without additional records.
  head.writeUInt16BE(0x8580 | (addresses ? 0 : NXDOMAIN), 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(addresses?.length ?? 0, 6);
  head.writeUInt32BE(0, 8);
  const rows = (addresses ?? []).map((address) => {
    const bytes = Buffer.from(ipaddr.parse(address).toByteArray());
    const row = Buffer.alloc(12);
    row.writeUInt16BE(0xc000 | HEADER, 0);
    row.writeUInt16BE(type, 2);
    row.writeUInt16BE(1, 4);
    row.writeUInt32BE(0, 6);
    row.writeUInt16BE(bytes.length, 10);
    return Buffer.concat([row, bytes]);
  });
  return Buffer.concat([head, ...rows]);
}
