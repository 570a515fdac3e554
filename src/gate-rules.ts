/** The operators' rules of all namespaces, from a folder of `<namespace>.yaml`, kept at what stands there. */
import type { Logger } from "./catalogue/ports.js";
import { SLUG_PATTERN } from "./domain/ids.js";
import { watchFolder, type WatchedFolder } from "./files/watched-folder.js";
import { problemText, RULE_LIMITS } from "./gate/rules/model.js";
import { readRules } from "./gate/rules/parse.js";
import { rulesOf } from "./gate/rules/rules.js";
import { NO_RULES, type Rules } from "./gate/stages.js";

export interface GateRules {
  of(namespace: string): Rules;
  /** False while something in the folder cannot be used, and older rules are in force. */
  readonly valid: boolean;
  onChange(listener: () => void): void;
  close(): void;
}

export const NO_GATE_RULES: GateRules = {
  of: () => NO_RULES,
  valid: true,
  onChange: () => undefined,
  close: () => undefined,
};

/** Far above the namespaces that anybody writes rules for by hand. */
const FILES = 1_000;

/** Throws Problems with every problem of every file where something cannot be used at the start. */
export function watchGateRules(path: string, log: Logger): GateRules {
  const folder: WatchedFolder<Rules> = watchFolder({
    what: "the gate's rules",
    path,
    endings: [".yaml", ".yml"],
    names: { pattern: SLUG_PATTERN, expected: "a namespace and .yaml, such as default.yaml" },
    maxFiles: FILES,
    maxBytes: RULE_LIMITS.bytes,
    parse: (_namespace, content) => {
      const read = readRules(content);
      return read.ok ? { ok: true, value: rulesOf(read.file) } : { ok: false, problems: read.problems.map(problemText) };
    },
    log,
  });
  let rules = folder.value;
  folder.onChange(() => (rules = folder.value));
  return {
    of: (namespace) => rules.get(namespace) ?? NO_RULES,
    get valid() {
      return folder.valid;
    },
    onChange: (listener) => void folder.onChange(listener),
    close: () => folder.close(),
  };
}
