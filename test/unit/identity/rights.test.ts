import { describe, expect, it } from "vitest";
import { readGrants, principalProblems } from "../../../src/domain/grants.js";
import { type Action, EVERYBODY, type Grant, matches, may, mayChange, mayTouch, ownerAfter, type Principal } from "../../../src/domain/identity.js";

const who = (...grants: Grant[]): Principal => ({ id: "alice", grants });
const reader = who({ role: "reader", namespaces: ["a"] });
const billing = who({ role: "registrant", namespaces: ["a"], servers: ["billing-*", "invoices"] });
const operator = who({ role: "operator", namespaces: ["a"] });

describe("may", () => {
  const table: readonly (readonly [Principal, Action, string, string | undefined, boolean])[] = [
    [reader, "read", "a", undefined, true],
    [reader, "read", "b", undefined, false],
    [reader, "register", "a", "billing-1", false],
    [billing, "read", "a", "anything", true],
    [billing, "register", "a", "billing-1", true],
    [billing, "register", "a", "invoices", true],
    [billing, "register", "a", "invoices-2", false],
    [billing, "register", "a", undefined, true],
    [billing, "register", "b", "billing-1", false],
    [billing, "operate", "a", "billing-1", false],
    [operator, "operate", "a", "x", true],
    [operator, "operate", "b", "x", false],
    [who({ role: "operator", namespaces: ["*"] }), "operate", "anywhere", "x", true],
    [who(), "read", "a", undefined, false],
    [EVERYBODY, "operate", "anywhere", "x", true],
  ];
  it.each(table)("%j %s %s %s: %s", (principal, action, namespace, serverId, expected) => {
    expect(may(principal, action, namespace, serverId)).toBe(expected);
  });
});

describe("owners", () => {
  it("the first stays, nobody gives way, operators pass", () => {
    expect(ownerAfter("", billing)).toBe("alice");
    expect(ownerAfter("anonymous", billing)).toBe("alice");
    expect(ownerAfter("bob", operator)).toBe("bob");
    expect(mayTouch(billing, "alice", "a")).toBe(true);
    expect(mayTouch(billing, "bob", "a")).toBe(false);
    expect(mayTouch(billing, "anonymous", "a")).toBe(true);
    expect(mayTouch(operator, "bob", "a")).toBe(true);
    expect(mayTouch(operator, "bob", "b")).toBe(false);
    expect(mayChange(billing, "alice", "a", "elsewhere")).toBe(false);
    expect(mayChange(billing, "alice", "a", "invoices")).toBe(true);
  });
});

describe("patterns", () => {
  it.each([
    ["*", "", true],
    ["a*", "a", true],
    ["a*b", "ab", true],
    ["a*b", "a", false],
    ["ab*ba", "aba", false],
    ["*-x-*", "a-x-b", true],
    ["*-x-*", "a-x", false],
    ["a.b", "axb", false],
    ["*a*a*a*", "aa", false],
  ])("%s on %j: %s", (pattern, text, expected) => {
    expect(matches(pattern, text)).toBe(expected);
  });

  it("never takes long", () => {
    expect(matches("*a".repeat(30), `${"a".repeat(5_000)}b`)).toBe(false);
  });
});

describe("grants as text", () => {
  it("are read", () => {
    const value = [{ role: "registrant", namespaces: ["a", "*"], servers: ["x-*"] }];
    expect(readGrants("g", value)).toEqual({ ok: true, value });
  });

  it("tell every mistake", () => {
    const read = readGrants("g", [
      { role: "king", namespaces: [] },
      { role: "reader", namespaces: ["A b"], servers: ["x"], also: 1 },
      7,
      { role: "registrant", namespaces: ["a"], servers: ["x/[0-9]+"] },
    ]);
    const problems = read.ok ? [] : read.problems;
    for (const said of ["g[0].role", "g[0].namespaces", '"also"', '"A b"', "g[1].servers binds", "g[2] must be an object", "x/[0-9]+"])
      expect(problems.join("\n")).toContain(said);
  });

  it.each([undefined, null, {}, [], "operator"])("%j is no list of grants", (value) => {
    expect(readGrants("g", value)).toMatchObject({ ok: false });
  });

  it("names of principals", () => {
    for (const good of ["ci", "spiffe://acme/billing", "a@b.example", "sub|no".replace("|", ":")]) expect(principalProblems("p", good)).toEqual([]);
    for (const bad of ["", " a", "a\nb", "anonymous", 7, undefined, "x".repeat(201)]) expect(principalProblems("p", bad)).toHaveLength(1);
  });
});
