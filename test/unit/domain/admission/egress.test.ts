import { describe, expect, it } from "vitest";
import { canonicalAddress } from "../../../../src/domain/admission/address.js";
import { addressDenial, type AllowList, type EgressPolicy, endpointDenial, type Own, readAllowList } from "../../../../src/domain/admission/egress.js";
import { forbiddenPort } from "../../../../src/domain/admission/ports.js";

function listed(text: string): AllowList {
  const read = readAllowList(text);
  if ("problems" in read) throw new Error(read.problems.join());
  return read;
}

function policy(inside: "open" | "closed", allow = "", own: readonly Own[] = []): EgressPolicy {
  return { inside, allow: listed(allow), own: () => own, machine: () => ["10.9.8.7", "fe80::5", "127.0.0.1"] };
}

const open = policy("open");
const closed = policy("closed");
/** The strictest list that an operator can lift. */
const everything = policy("closed", "0.0.0.0/0, ::/0, *.example.internal, 169.254.0.0/16, fd00::/8, localhost, metadata.example.internal");

/** Host of an endpoint → how the refusal goes on. */
const NEVER: readonly (readonly [host: string, says: string])[] = [
  ["169.254.169.254", "is a cloud metadata address, which is never dialled"],
  ["2852039166", "is a cloud metadata address"],
  ["0xa9.0xfe.0xa9.0xfe", "is a cloud metadata address"],
  ["0251.0376.0251.0376", "is a cloud metadata address"],
  ["169.254.43518", "is a cloud metadata address"],
  ["１６９.２５４.１６９.２５４", "is a cloud metadata address"],
  ["[::ffff:169.254.169.254]", "is a cloud metadata address"],
  ["[::ffff:a9fe:a9fe]", "is a cloud metadata address"],
  ["[fd00:ec2::254]", "is a cloud metadata address"],
  ["[fd20:ce::254]", "is a cloud metadata address"],
  ["100.100.100.200", "is a cloud metadata address"],
  ["168.63.129.16", "is a cloud metadata address"],
  ["metadata.google.internal", "is a cloud metadata address"],
  ["METADATA.google.internal.", "is a cloud metadata address"],
  ["x.metadata.goog", "is a cloud metadata address"],
  ["[64:ff9b::169.254.169.254]", "carries a cloud metadata address"],
  ["[64:ff9b:1::169.254.169.254]", "carries a cloud metadata address"],
  ["[2002:a9fe:a9fe::]", "carries a cloud metadata address"],
  ["[2001:0:808:808::5601:5601]", "carries a cloud metadata address"],
  ["[::169.254.169.254]", "carries a cloud metadata address"],
  ["0.0.0.0", "is an unspecified address"],
  ["0", "is an unspecified address"],
  ["[::]", "is an unspecified address"],
  ["224.0.0.1", "is a multicast address"],
  ["[ff02::1]", "is a multicast address"],
  ["255.255.255.255", "is a broadcast address"],
];

describe("what is never dialled", () => {
  it.each(NEVER)("%s %s, under any settings", (host, says) => {
    for (const one of [open, closed, everything]) {
      expect(endpointDenial(one, `http://${host}/p?q=1`)).toContain(says);
      expect(endpointDenial(one, `https://${host}:3001/`)).toContain("whatever the settings say");
    }
  });

  it.each([
    ["file:///etc/passwd", /only http and https/],
    ["not a url", /no URL/],
    ["http://me@10.0.0.1/", /user name or password/],
    ["http://:hunter2@10.0.0.1/", /user name or password/],
  ])("%s", (endpoint, says) => {
    expect(endpointDenial(open, endpoint)).toMatch(says);
    expect(endpointDenial(open, endpoint)).not.toContain("hunter2");
  });
});

describe("ports", () => {
  /** WHATWG Fetch, "bad port". */
  const BROWSERS = `0 1 7 9 11 13 15 17 19 20 21 22 23 25 37 42 43 53 69 77 79 87 95 101 102 103 104 109 110 111 113 115 117 119 123 135
    137 139 143 161 179 389 427 465 512 513 514 515 526 530 531 532 540 548 554 556 563 587 601 636 989 990 993 995 1719 1720
    1723 2049 3659 4045 4190 5060 5061 6000 6566 6665 6666 6667 6668 6669 6679 6697 10080`;
  const others = [1433, 1521, 2375, 2379, 3306, 5432, 6379, 6380, 9042, 9200, 10250, 11211, 26379, 27017];

  it("of browsers' list and of databases and control planes are refused by name, the default ports too", () => {
    for (const port of [...BROWSERS.split(/\s+/).map(Number), ...others]) {
      expect(forbiddenPort(port), String(port)).toBeTruthy();
      expect(endpointDenial(everything, `http://example.com:${port}/`)).toContain(`port ${port} (${forbiddenPort(port)}) is never dialled`);
    }
  });

  it.each([80, 443, 3000, 3001, 7850, 8000, 8080, 8443, 30_000, 32_768, 50_000, 65_535])("%i may be dialled", (port) => {
    expect(endpointDenial(open, `http://example.com:${port}/`)).toBeUndefined();
  });
});

describe("inside addresses", () => {
  const inside = ["127.0.0.1", "2130706433", "0x7f.1", "127.255.255.254", "[::1]", "[::ffff:127.0.0.1]", "10.0.0.1", "172.31.0.1", "192.168.1.1", "[fd12::1]", "[::ffff:a00:1]", "localhost", "a.localhost"];

  it.each(inside)("%s is open to a registry on loopback, and closed to another", (host) => {
    expect(endpointDenial(open, `http://${host}:3001/mcp`)).toBeUndefined();
    const sentence = endpointDenial(closed, `http://${host}:3001/s3cret?api_key=s3cret`);
    expect(sentence).toMatch(/(is|resolves to) a (loopback|private) address/);
    expect(sentence).toContain("--egress-allow (TOOLCRIB_EGRESS_ALLOW)");
    const { hostname } = new URL(`http://${host}`);
    expect(sentence).toContain(`add ${canonicalAddress(hostname) ?? hostname} or its network`);
    expect(sentence).not.toContain("s3cret");
    expect(endpointDenial(everything, `http://${host}:3001/mcp`)).toBeUndefined();
  });

  it.each(["169.254.1.1", "[fe80::1]", "100.64.0.1", "192.0.2.1", "[2001:db8::1]", "240.0.0.1", "198.18.0.1", "[::2]", "[2001:0:808:808::f7f7:f7f7]"])(
    "%s is closed to both, and can be allowed",
    (host) => {
      for (const one of [open, closed]) expect(endpointDenial(one, `http://${host}/`)).toContain("--egress-allow");
      expect(endpointDenial(everything, `http://${host}/`)).toBeUndefined();
    },
  );

  it.each(["93.184.216.34", "[2606:4700::1111]", "example.com", "[64:ff9b::808:808]", "[2002:808:808::1]"])("%s is open to both", (host) => {
    for (const one of [open, closed]) expect(endpointDenial(one, `https://${host}/mcp`)).toBeUndefined();
  });

  it.each(["[64:ff9b::10.0.0.1]", "[2002:a00:1::]", "[64:ff9b:1::10.0.0.1]"])("%s is as closed as what it carries", (host) => {
    expect(endpointDenial(closed, `http://${host}/`)).toMatch(/ (is|carries) a private address/);
  });
});

describe("names, by their addresses", () => {
  const target = { host: "mcp.example.internal", port: 3001 };

  it.each([
    ["closed", "", "10.0.0.1", "resolves to a private address"],
    ["closed", "", "127.0.0.1", "resolves to a loopback address"],
    ["open", "", "10.0.0.1", undefined],
    ["open", "", "100.64.0.1", "resolves to a carrier-grade NAT address"],
    ["open", "", "169.254.169.254", "resolves to a cloud metadata address"],
    ["open", "", "64:ff9b::a9fe:a9fe", "resolves to a cloud metadata address"],
    ["open", "", "fe80::1%eth0", "resolves to a link-local address"],
    ["open", "", "0177.0.0.1", "cannot be understood"],
    ["closed", "10.0.0.0/16", "10.0.0.1", undefined],
    ["closed", "10.0.0.0/16", "10.1.0.1", "resolves to a private address"],
    ["closed", "10.0.0.0/16", "::ffff:10.0.0.1", undefined],
    ["closed", "10.0.0.0/16", "64:ff9b::10.0.0.1", undefined],
    ["closed", "mcp.example.internal", "10.0.0.1", undefined],
    ["closed", "MCP.Example.Internal.", "10.0.0.1", undefined],
    ["closed", "*.example.internal", "127.0.0.1", undefined],
    ["closed", "*.mcp.example.internal", "10.0.0.1", "resolves to a private address"],
    ["closed", "example.internal", "10.0.0.1", "resolves to a private address"],
    ["closed", "*.internal, 0.0.0.0/0", "169.254.169.254", "which is never dialled"],
    ["closed", "*.internal, ::/0", "fd00:ec2::254", "which is never dialled"],
    ["closed", "*.internal", "0.0.0.0", "which is never dialled"],
  ] as const)("%s, allowing %j: %s → %s", (inside, allow, address, says) => {
    const sentence = addressDenial(policy(inside, allow), target, address);
    if (says === undefined) expect(sentence).toBeUndefined();
    else expect(sentence).toContain(says);
    // What an inside name resolves to is not told to whoever asks.
    if (sentence?.includes("resolves to")) expect(sentence).not.toContain(address);
  });
});

describe("the registry's own", () => {
  const own = (host: string, port = 7850): Own => ({ what: "the registry's own gRPC listener", host, port });
  const denied = (listener: Own, endpoint: string): boolean =>
    endpointDenial(policy("open", "0.0.0.0/0,::/0", [listener]), endpoint)?.includes("is the registry's own gRPC listener") ?? false;

  it.each([
    ["127.0.0.1", "127.0.0.1", true],
    ["127.0.0.1", "0x7f.1", true],
    ["127.0.0.1", "[::ffff:127.0.0.1]", true],
    ["127.0.0.1", "[64:ff9b::7f00:1]", true],
    ["127.0.0.1", "localhost", true],
    ["127.0.0.1", "x.localhost", true],
    ["127.0.0.1", "127.0.0.2", false],
    ["::1", "[::1]", true],
    ["::1", "localhost", true],
    ["::1", "127.0.0.1", false],
    ["localhost", "127.0.0.1", true],
    ["localhost", "[::1]", true],
    ["localhost", "LOCALHOST.", true],
    ["localhost", "127.0.0.2", false],
    ["0.0.0.0", "127.0.0.1", true],
    ["0.0.0.0", "127.9.9.9", true],
    ["0.0.0.0", "10.9.8.7", true],
    ["0.0.0.0", "10.9.8.6", false],
    ["::", "127.0.0.1", true],
    ["::", "[::1]", true],
    ["::", "[fe80::5]", true],
    ["[::]", "[::ffff:10.9.8.7]", true],
    ["10.9.8.7", "10.9.8.7", true],
    ["10.9.8.7", "127.0.0.1", false],
    ["redis.example.internal", "redis.example.internal", true],
    ["Redis.Example.Internal", "REDIS.example.internal.", true],
    ["redis.example.internal", "other.example.internal", false],
  ])("at %s: %s, %s", (listener, host, is) => {
    expect(denied(own(listener), `http://${host}:7850/mcp`)).toBe(is);
    expect(denied(own(listener), `http://${host}:7851/mcp`)).toBe(false);
  });

  it("is found on a default port, and behind a name whose address is known", () => {
    expect(denied(own("127.0.0.1", 80), "http://127.0.0.1/")).toBe(true);
    expect(denied(own("127.0.0.1", 443), "https://127.0.0.1/")).toBe(true);
    const target = { host: "mine.example.internal", port: 7850 };
    expect(addressDenial(policy("open", "", [own("0.0.0.0")]), target, "10.9.8.7")).toContain("the registry's own gRPC listener");
    expect(addressDenial(open, target, "10.0.0.3", [own("10.0.0.3")])).toContain("the registry's own gRPC listener");
  });
});

describe("a list of what may be dialled", () => {
  it("takes networks, addresses and names, in any spelling of case and space", () => {
    expect(listed(" 10.0.0.0/8 ,fd00::/8,[::1], 127.0.0.1,Example.INTERNAL,*.x.internal,münchen.example,").names).toEqual(["example.internal", ".x.internal", "xn--mnchen-3ya.example"]);
    expect(listed("10.0.0.0/8,::/0, 1.2.3.4").networks).toHaveLength(3);
    expect(listed("")).toEqual({ networks: [], names: [] });
  });

  it("says everything that is wrong at once", () => {
    const bad: readonly (readonly [entry: string, why: RegExp])[] = [
      ["10.0.0.1/8", /the network is 10\.0\.0\.0\/8/],
      ["10.0.0.0/40", /no length from 0 to 32/],
      ["127.1", /unusual spelling: write 127\.0\.0\.1/],
      ["0x7f000001", /unusual spelling/],
      ["*", /neither a network/],
      ["*.", /neither a network/],
      ["a*.example", /neither a network/],
      ["http://h", /no network/],
      ["host:80", /neither a network/],
      ["a b", /neither a network/],
      ["169.254.169.254", /cloud metadata address, which is never dialled/],
      ["fd00:ec2::254", /cloud metadata address/],
      ["0.0.0.0", /unspecified address/],
      ["metadata.google.internal", /cloud metadata service/],
    ];
    const read = readAllowList(bad.map(([entry]) => entry).join(","));
    const problems = "problems" in read ? read.problems : [];
    expect(problems).toHaveLength(bad.length);
    bad.forEach(([entry, why], i) => {
      expect(problems[i]).toContain(`"${entry}"`);
      expect(problems[i]).toMatch(why);
    });
  });
});
