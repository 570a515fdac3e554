import { readRules } from "../../src/gate/rules/parse.js";
import { rulesOf } from "../../src/gate/rules/rules.js";
import type { Rules } from "../../src/gate/stages.js";

/** The rules of a file with this text; throws what is wrong with it. */
export function rulesFrom(text: string): Rules {
  const read = readRules(Buffer.from(text));
  if (!read.ok) throw new Error(JSON.stringify(read.problems));
  return rulesOf(read.file);
}
