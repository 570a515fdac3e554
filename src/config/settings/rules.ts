/** What operators say of tools. */
import { type Setting, type TextRule } from "../setting.js";

const FOLDER: TextRule = { pattern: /^[^\0]{1,4096}$/s, expected: "a path of 1 to 4,096 characters without NUL", placeholder: "folder" };

export const RULES: readonly Setting[] = [
  {
    name: "gateRules",
    flag: "--gate-rules",
    variable: "TOOLCRIB_GATE_RULES",
    fallback: "",
    kind: { kind: "optional", rule: FOLDER },
    help: "Folder of `<namespace>.yaml`: categories and rules that FindTools keeps to; read again when a file changes.",
  },
];
