import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { aclRule } from "../../../src/store/redis/rights.js";

const FOLDER = new URL("../../../src/store/redis/", import.meta.url);

test("the documented rights are those of the commands that are sent, by scripts and by the program, and no others", () => {
  const sent = new Set<string>();
  for (const file of readdirSync(FOLDER)) {
    const source = readFileSync(new URL(file, FOLDER), "utf8");
    const calls = file.endsWith(".lua")
      ? source.matchAll(/redis\.call\('([A-Za-z]+)'/g)
      : source.matchAll(/\b(?:call|callBuffer|send)\(\s*"([A-Za-z]+)"/g);
    for (const [, command = ""] of calls) sent.add(command.toLowerCase());
  }
  // CONFIG is granted by subcommand; the name of a connection is set by ioredis.
  expect(sent.delete("config")).toBe(true);
  for (const name of ["config|get", "client|setname"]) sent.add(name);
  const granted = aclRule("toolcrib:", "single")
    .split(" ")
    .flatMap((part) => (part.startsWith("+") ? [part.slice(1)] : []));
  expect(granted.sort()).toEqual([...sent].sort());
  expect(aclRule("x:", "cluster", true)).toMatch(/^~x:\* resetchannels -@all .* \+cluster\|slots \+cluster\|info \+asking \+select$/);
});
