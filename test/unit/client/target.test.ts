import { describe, expect, it } from "vitest";
import { isLoopbackHost, parseTarget } from "../../../src/client/target.js";

describe("the registry's address", () => {
  it.each([
    [undefined, "127.0.0.1:7850", true],
    ["", "127.0.0.1:7850", true],
    ["localhost", "localhost:7850", true],
    ["10.0.0.7:9000", "10.0.0.7:9000", false],
    ["grpc://registry.internal:7850", "registry.internal:7850", false],
    ["http://127.0.0.1:7850/", "127.0.0.1:7850", true],
    ["http://crib:80", "crib:80", false],
    ["[::1]:7850", "[::1]:7850", true],
  ])("%s is %s", (text, address, loopback) => {
    expect(parseTarget(text)).toEqual({ address, loopback, tls: false });
  });

  it.each([
    ["https://crib:443", "crib:443"],
    ["grpcs://registry.internal", "registry.internal:7850"],
  ])("%s is spoken to over TLS", (text, address) => {
    expect(parseTarget(text)).toEqual({ address, loopback: false, tls: true });
  });

  it.each([
    ["redis://crib", "unknown"],
    ["crib:7850/path", "path"],
    ["me:secret@crib:7850", "user information"],
    ["crib:70000", "host and port"],
    ["crib:0", "port 0"],
    ["http://", "host"],
    ["a b", "host and port"],
  ])("%s is refused because of %s", (text, why) => {
    expect(() => parseTarget(text)).toThrow(why);
    expect(() => parseTarget(text)).toThrow("Give host:port");
  });

  it("knows this machine's names", () => {
    expect(["127.0.0.1", "127.1.2.3", "localhost", "[::1]", "x.localhost"].every(isLoopbackHost)).toBe(true);
    expect(["128.0.0.1", "local", "127.evil.com", "10.0.0.1"].some(isLoopbackHost)).toBe(false);
  });
});
