import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, it } from "vitest";
import { readTokens } from "../../../src/rpc/identity/tokens.js";

const SCRIPT = fileURLToPath(new URL("../../../deploy/init/tokens.mjs", import.meta.url));
const NAMES = ["identity", "registrant", "operator"] as const;

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "toolcrib-tokens-"));
  for (const name of NAMES) mkdirSync(join(root, name));
});
afterEach(() => rmSync(root, { recursive: true }));

const at = (...path: string[]) => join(root, ...path);
const run = (...args: string[]) => execFileSync(process.execPath, [SCRIPT, ...args], { encoding: "utf8" });
const make = () => run(...NAMES.map((name) => at(name)));

it("makes tokens once, and a file of their hashes that the registry reads", () => {
  make();
  const token = readFileSync(at("operator", "token"), "utf8");
  expect(token).toMatch(/^tcrib_[\w-]{43}$/);
  expect(run("show", at("operator"))).toBe(`${token}\n`);
  const hashes = readFileSync(at("identity", "tokens.json"));
  expect(readTokens(hashes)).toMatchObject({ ok: true });
  for (const name of ["operator", "registrant"])
    expect(hashes.toString()).not.toContain(readFileSync(at(name, "token"), "utf8"));

  make();
  expect(readFileSync(at("operator", "token"), "utf8")).toBe(token);
  expect(readFileSync(at("identity", "tokens.json"))).toEqual(hashes);
});

it("lets nobody else read what it made", () => {
  make();
  for (const path of [at("identity", "tokens.json"), at("operator", "token"), at("registrant", "token")])
    expect(statSync(path).mode & 0o777, path).toBe(0o400);
});

it("completes what a run cut short left behind", () => {
  make();
  rmSync(at("registrant", "token"));
  const operator = readFileSync(at("operator", "token"), "utf8");
  make();
  expect(readFileSync(at("operator", "token"), "utf8")).toBe(operator);
  const parsed = readTokens(readFileSync(at("identity", "tokens.json")));
  expect(parsed).toMatchObject({ ok: true });
});
