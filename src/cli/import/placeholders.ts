import { homedir } from "node:os";
import { sep } from "node:path";

/** What stands in for a `${…}` of the file. */
export type Placeholder =
  /** A variable; `fallback` from `${NAME:-fallback}`. `input` where the editor asks for it by this id. */
  | { readonly kind: "variable"; readonly name: string; readonly fallback?: string; readonly input?: string }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "unknown"; readonly written: string };

export const PLACEHOLDER = /\$\{([^}]*)\}/g;

/** Reads the inside of `${…}` as the clients do: `env:X`, `X`, `X:-default`, `input:id`, `userHome`, `pathSeparator`. */
export function readPlaceholder(inside: string): Placeholder {
  const [, scheme, name = "", fallback] = /^(?:(env|input):)?([^:]+)(?::-(.*))?$/s.exec(inside) ?? [];
  if (scheme === "input") return { kind: "variable", name: variableFor(name), input: name };
  if (scheme === "env") return { kind: "variable", name, ...(fallback === undefined ? {} : { fallback }) };
  if (inside === "userHome") return { kind: "text", text: homedir() };
  if (inside === "pathSeparator" || inside === "/") return { kind: "text", text: sep };
  // What editors know is written in camel case; variables hardly ever are.
  if (/^[A-Z_][A-Z0-9_]*$|^[a-z][a-z0-9]*_\w+$/.test(name))
    return { kind: "variable", name, ...(fallback === undefined ? {} : { fallback }) };
  return { kind: "unknown", written: `\${${inside}}` };
}

/** `github-token` → `GITHUB_TOKEN`. */
function variableFor(input: string): string {
  const name = input
    .toUpperCase()
    .replace(/[^A-Z0-9]+/g, "_")
    .replace(/^_+|_+$/g, "");
  return /^\d/.test(name) ? `_${name}` : name || "INPUT";
}

export type Expanded =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly why: readonly string[] };

/** Puts values in the places; all that is missing is told at once, by name and never by value. */
export function expand(text: string, env: NodeJS.ProcessEnv): Expanded {
  const why: string[] = [];
  const expanded = text.replace(PLACEHOLDER, (_all, inside: string) => {
    const placeholder = readPlaceholder(inside);
    if (placeholder.kind === "text") return placeholder.text;
    if (placeholder.kind === "unknown") {
      why.push(`${placeholder.written} is known to the editor alone: write its value in the file`);
      return "";
    }
    const value = env[placeholder.name] ?? placeholder.fallback;
    if (value === undefined) why.push(missing(placeholder));
    return value ?? "";
  });
  return why.length === 0 ? { ok: true, text: expanded } : { ok: false, why };
}

function missing({ name, input }: Placeholder & { kind: "variable" }): string {
  if (input !== undefined) return `the editor would ask for ${JSON.stringify(input)}: set ${name} instead`;
  return `the variable ${name} is not set`;
}

export function holdsPlaceholder(text: string): boolean {
  return /\$\{[^}]*\}/.test(text);
}
