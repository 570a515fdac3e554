import type { Texts } from "./config-file.js";
import { PLACEHOLDER, holdsPlaceholder, readPlaceholder } from "./placeholders.js";

/** Where a credential's value comes from: the registry's environment, or a file of its own that is written for it. */
export type SecretSource =
  | { readonly kind: "env"; readonly name: string }
  | { readonly kind: "literal"; readonly value: string };

export interface SecretHeader {
  readonly header: string;
  /** What stands before the value, such as `Bearer `; may be empty. */
  readonly prefix: string;
  readonly source: SecretSource;
}

/** What becomes of a server's headers: the registry adds one header a server, and only a named credential's. */
export interface HeaderPlan {
  readonly secret: SecretHeader | undefined;
  /** Sentences about the headers that are not sent. */
  readonly notes: readonly string[];
}

/** The registry speaks MCP by itself. */
const ITS_OWN = /^(?:accept|content-type|user-agent|host|connection|mcp-.*)$/i;
const SECRET_NAME = /auth|key|token|secret|cookie|password|credential|session/i;
const SCHEME = /^(?:Bearer|Basic|Token|ApiKey)\s+/i;

export function planHeaders(headers: Texts): HeaderPlan {
  const own = Object.entries(headers).filter(([name]) => !ITS_OWN.test(name));
  const secrets = own.filter(([name, value]) => SECRET_NAME.test(name) || holdsPlaceholder(value));
  const [chosen] = [...secrets].sort(([a], [b]) => rank(a) - rank(b));
  const notes = own
    .filter((header) => header !== chosen)
    .map(
      ([name]) => `its header ${name} is not sent: the registry adds one header a server, that of a named credential`,
    );
  if (!chosen) return { secret: undefined, notes };
  const read = readSecret(...chosen);
  if (typeof read === "string")
    return { secret: undefined, notes: [...notes, `its header ${chosen[0]} is not sent: ${read}`] };
  return { secret: read, notes };
}

function rank(name: string): number {
  return name.toLowerCase() === "authorization" ? 0 : 1;
}

/** A sentence where the value cannot become a credential. */
function readSecret(header: string, text: string): SecretHeader | string {
  const places = [...text.matchAll(PLACEHOLDER)];
  if (places.length === 0) {
    const prefix = SCHEME.exec(text)?.[0] ?? "";
    const value = text.slice(prefix.length);
    return value.trim() === "" ? "its value is empty" : { header, prefix, source: { kind: "literal", value } };
  }
  const [place] = places;
  const inside = place && readPlaceholder(place[1] ?? "");
  const atEnd = place !== undefined && place.index + place[0].length === text.length;
  if (places.length > 1 || !atEnd || inside?.kind !== "variable") {
    return "a credential is a fixed text and one variable after it: define it by hand in the credentials file";
  }
  return { header, prefix: text.slice(0, place.index), source: { kind: "env", name: inside.name } };
}
