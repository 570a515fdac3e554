import { BlockList, isIPv4 } from "node:net";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type AddressClass, canonicalAddress, facesOf, holds, readNetwork } from "../../../../src/domain/admission/address.js";

const classOf = (text: string): AddressClass | undefined => facesOf(text)?.[0]?.class;

/** Every range by its first and its last address. */
const RANGES: readonly (readonly [AddressClass, first: string, last: string])[] = [
  ["unspecified", "0.0.0.0", "0.0.0.0"],
  ["reserved", "0.0.0.1", "0.255.255.255"],
  ["public", "1.0.0.0", "9.255.255.255"],
  ["private", "10.0.0.0", "10.255.255.255"],
  ["public", "11.0.0.0", "100.63.255.255"],
  ["carrier-grade NAT", "100.64.0.0", "100.100.100.199"],
  ["cloud metadata", "100.100.100.200", "100.100.100.200"],
  ["carrier-grade NAT", "100.100.100.201", "100.127.255.255"],
  ["public", "100.128.0.0", "126.255.255.255"],
  ["loopback", "127.0.0.0", "127.255.255.255"],
  ["public", "128.0.0.0", "168.63.129.15"],
  ["cloud metadata", "168.63.129.16", "168.63.129.16"],
  ["public", "168.63.129.17", "169.253.255.255"],
  ["link-local", "169.254.0.0", "169.254.0.22"],
  ["cloud metadata", "169.254.0.23", "169.254.0.23"],
  ["link-local", "169.254.0.24", "169.254.42.41"],
  ["cloud metadata", "169.254.42.42", "169.254.42.42"],
  ["link-local", "169.254.42.43", "169.254.168.255"],
  ["cloud metadata", "169.254.169.0", "169.254.170.255"],
  ["cloud metadata", "169.254.169.254", "169.254.169.254"],
  ["link-local", "169.254.171.0", "169.254.255.255"],
  ["public", "169.255.0.0", "172.15.255.255"],
  ["private", "172.16.0.0", "172.31.255.255"],
  ["public", "172.32.0.0", "191.255.255.255"],
  ["reserved", "192.0.0.0", "192.0.0.191"],
  ["cloud metadata", "192.0.0.192", "192.0.0.192"],
  ["reserved", "192.0.0.193", "192.0.0.255"],
  ["public", "192.0.1.0", "192.0.1.255"],
  ["documentation", "192.0.2.0", "192.0.2.255"],
  ["public", "192.0.3.0", "192.88.98.255"],
  ["reserved", "192.88.99.0", "192.88.99.255"],
  ["public", "192.88.100.0", "192.167.255.255"],
  ["private", "192.168.0.0", "192.168.255.255"],
  ["public", "192.169.0.0", "198.17.255.255"],
  ["reserved", "198.18.0.0", "198.19.255.255"],
  ["public", "198.20.0.0", "198.51.99.255"],
  ["documentation", "198.51.100.0", "198.51.100.255"],
  ["public", "198.51.101.0", "203.0.112.255"],
  ["documentation", "203.0.113.0", "203.0.113.255"],
  ["public", "203.0.114.0", "223.255.255.255"],
  ["multicast", "224.0.0.0", "239.255.255.255"],
  ["reserved", "240.0.0.0", "255.255.255.254"],
  ["broadcast", "255.255.255.255", "255.255.255.255"],
  ["unspecified", "::", "::"],
  ["loopback", "::1", "::1"],
  ["reserved", "::2", "::fffe:ffff:ffff"],
  ["reserved", "::1:0:0:0", "64:ff9a:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["public", "64:ff9b::", "64:ff9b::ffff:ffff"],
  ["reserved", "64:ff9b::1:0:0", "64:ff9b:0:ffff:ffff:ffff:ffff:ffff"],
  ["private", "64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff"],
  ["reserved", "64:ff9b:2::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["reserved", "100::", "100::ffff:ffff:ffff:ffff"],
  ["public", "2000::", "2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["reserved", "2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["public", "2001:200::", "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["documentation", "2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["public", "2001:db9::", "3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["documentation", "3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["public", "3fff:1000::", "3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["reserved", "4000::", "fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["reserved", "5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["private", "fc00::", "fd00:42::41"],
  ["cloud metadata", "fd00:42::42", "fd00:42::42"],
  ["cloud metadata", "fd00:c1::a9fe:a9fe", "fd00:c1::a9fe:a9fe"],
  ["private", "fd00:42::43", "fd00:ec1:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["cloud metadata", "fd00:ec2::", "fd00:ec2:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["cloud metadata", "fd00:ec2::254", "fd20:ce::254"],
  ["private", "fd00:ec3::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["reserved", "fe00::", "fe7f:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["link-local", "fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["cloud metadata", "fe80::a9fe:a9fe", "fe80::a9fe:a9fe"],
  ["private", "fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["multicast", "ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
];

describe("the class of an address", () => {
  it.each(RANGES)("%s: %s to %s", (name, first, last) => {
    expect([classOf(first), classOf(last)]).toEqual([name, name]);
  });

  it("leaves no gap between the IPv4 ranges above", () => {
    const number = (text: string): number => text.split(".").reduce((sum, octet) => sum * 256 + Number(octet), 0);
    const rows = RANGES.filter(([, first]) => isIPv4(first) && first !== "169.254.169.254");
    rows.forEach(([, first], i) => expect(number(first), first).toBe(i === 0 ? 0 : number(rows[i - 1]?.[2] ?? "") + 1));
    expect(rows.at(-1)?.[2]).toBe("255.255.255.255");
  });
});

describe("spellings", () => {
  const inUrl = (host: string): string | undefined => canonicalAddress(new URL(`http://${host}/`).hostname);

  it.each([
    ["2852039166", "169.254.169.254"],
    ["0xa9fea9fe", "169.254.169.254"],
    ["0xA9.0xFE.0xA9.0xFE", "169.254.169.254"],
    ["025177524776", "169.254.169.254"],
    ["0251.0376.0251.0376", "169.254.169.254"],
    ["169.254.43518", "169.254.169.254"],
    ["169.16689662", "169.254.169.254"],
    ["１６９.２５４.１６９.２５４", "169.254.169.254"],
    ["169。254。169。254", "169.254.169.254"],
    ["①⑥⑨.②⑤④.169.254", "169.254.169.254"],
    ["169.254.169.254.", "169.254.169.254"],
    ["%31%36%39.254.169.254", "169.254.169.254"],
    ["[::ffff:169.254.169.254]", "169.254.169.254"],
    ["[::ffff:a9fe:a9fe]", "169.254.169.254"],
    ["[0:0:0:0:0:FFFF:A9FE:A9FE]", "169.254.169.254"],
    ["127.1", "127.0.0.1"],
    ["0177.1", "127.0.0.1"],
    ["0x7f.1", "127.0.0.1"],
    ["0", "0.0.0.0"],
    ["[FD00:EC2:0:0:0:0:0:254]", "fd00:ec2::254"],
    ["[::127.0.0.1]", "::7f00:1"],
  ])("%s in a URL is %s", (host, address) => {
    expect(inUrl(host)).toBe(address);
  });

  it.each(["localhost", "example.com", "", "1.2.3", "0177.0.0.1", "0x7f.0.0.1", "1.2.3.256", "1.2.3.4.5", "::g", ":::", "[::1", "::ffff:0177.0.0.1", "1.2.3.4/8", "fe80::1/10"])(
    "%j is no address where no URL was parsed",
    (text) => {
      expect(facesOf(text)).toBeUndefined();
    },
  );

  it("a zone does not hide what an address is", () => {
    expect(classOf("fe80::1%eth0")).toBe("link-local");
    expect(classOf("fe80::a9fe:a9fe%1")).toBe("cloud metadata");
  });
});

describe("IPv4 inside IPv6", () => {
  it.each([
    ["compatible", "::169.254.169.254", ["reserved ::a9fe:a9fe", "cloud metadata 169.254.169.254"]],
    ["translated", "::ffff:0:169.254.169.254", ["reserved ::ffff:0:a9fe:a9fe", "cloud metadata 169.254.169.254"]],
    ["mapped", "::ffff:10.0.0.1", ["private 10.0.0.1"]],
    ["6to4", "2002:7f00:1::", ["public 2002:7f00:1::", "loopback 127.0.0.1"]],
    ["6to4 to a public address", "2002:808:808::1", ["public 2002:808:808::1", "public 8.8.8.8"]],
    ["Teredo", "2001:0:a00:1:8000:f000:5601:5601", ["reserved 2001:0:a00:1:8000:f000:5601:5601", "private 10.0.0.1", "cloud metadata 169.254.169.254"]],
    ["NAT64", "64:ff9b::a9fe:a9fe", ["public 64:ff9b::a9fe:a9fe", "cloud metadata 169.254.169.254"]],
    ["NAT64 to a public address", "64:ff9b::8.8.8.8", ["public 64:ff9b::808:808", "public 8.8.8.8"]],
    ["local NAT64, prefix of 96 bits", "64:ff9b:1::a9fe:a9fe", ["private 64:ff9b:1::a9fe:a9fe", "cloud metadata 169.254.169.254"]],
    ["no IPv4 inside", "2606:4700::1111", ["public 2606:4700::1111"]],
  ])("%s: %s", (_what, text, faces) => {
    expect(facesOf(text)?.map((face) => `${face.class} ${face.address}`)).toEqual(faces);
  });

  it.each([
    ["48", "64:ff9b:1:a9fe:a9:fe00::"],
    ["48, with bits behind it", "64:ff9b:1:a9fe:a9:fe00:0:1"],
    ["56", "64:ff9b:1:a9:fe:a9fe::"],
    ["64", "64:ff9b:1:0:a9:fea9:fe00:0"],
    ["96", "64:ff9b:1:1:2:3:a9fe:a9fe"],
  ])("a local NAT64 prefix of %s bits hides nothing", (_bits, text) => {
    expect(facesOf(text)?.map((face) => face.class)).toContain("cloud metadata");
  });
});

describe("networks", () => {
  const four = fc.ipV4();
  const six = fc.ipV6().filter((text) => canonicalAddress(text)?.includes(":") === true);

  it("hold what Node's own block list says they hold", () => {
    const pair = fc.oneof(
      fc.tuple(four, four, fc.integer({ min: 1, max: 32 })),
      fc.tuple(six, six, fc.integer({ min: 1, max: 128 })),
    );
    fc.assert(
      fc.property(pair, fc.boolean(), ([base, other, bits], same) => {
        const family = isIPv4(base) ? "ipv4" : "ipv6";
        const list = new BlockList();
        list.addSubnet(base, bits, family);
        const candidate = same ? base : other;
        const network = readNetwork(base);
        if (typeof network === "string") throw new Error(network);
        expect(holds({ ip: network.ip, bits }, candidate)).toBe(list.check(candidate, family));
      }),
    );
  });

  it.each([
    ["10.0.0.0/8", "10.255.255.255", true],
    ["10.0.0.0/8", "11.0.0.0", false],
    ["10.0.0.0/8", "::ffff:10.1.2.3", true],
    ["0.0.0.0/0", "255.255.255.255", true],
    ["0.0.0.0/0", "::1", false],
    ["::/0", "10.0.0.1", false],
    ["fd12:3456::/32", "fd12:3456::1", true],
    ["10.1.2.3", "10.1.2.3", true],
    ["10.1.2.3", "10.1.2.4", false],
  ])("%s, %s: %s", (text, address, inside) => {
    const network = readNetwork(text);
    if (typeof network === "string") throw new Error(network);
    expect(holds(network, address)).toBe(inside);
  });

  it.each([
    ["10.0.0.1/8", "has bits set beyond its length: the network is 10.0.0.0/8, the address 10.0.0.1"],
    ["fd00::1/7", "has bits set beyond its length: the network is fc00::/7, the address fd00::1"],
    ["10.0.0.0/33", "has no length from 0 to 32 after the slash"],
    ["fd00::/129", "has no length from 0 to 128 after the slash"],
    ["10.0.0.0/", "has no length from 0 to 32 after the slash"],
    ["10.0.0.0/-1", "has no length from 0 to 32 after the slash"],
    ["10.0.0.0/255.0.0.0", "has no length from 0 to 32 after the slash"],
    ["::ffff:10.0.0.0/104", "is an IPv4 network in IPv6 spelling: write it as IPv4"],
    ["10/8", "is no network such as 10.0.0.0/8 or fd00::/8"],
    ["10.0.0.0/8/8", "is no network such as 10.0.0.0/8 or fd00::/8"],
  ])("%s %s", (text, why) => {
    expect(readNetwork(text)).toBe(why);
  });
});
