import type { Violation } from "../fault.js";
import { LIMITS } from "../limits.js";
import { describeCharacter } from "./names.js";
import { quoted, textLength } from "./text.js";

/**
 * Everything that keeps a URL from being an endpoint. No message repeats the URL: it may hold a secret. Whether an address
 * may be dialled is decided by egress, not here.
 */
export function endpointViolations(field: string, url: string): Violation[] {
  return endpointReasons(url).map((description) => ({ field, description }));
}

function endpointReasons(url: string): string[] {
  const reasons = lengthReasons(url);
  const wrong = wrongCharacter(url, "an endpoint");
  if (wrong) return [...reasons, wrong];
  const scheme = /^([A-Za-z][A-Za-z0-9+.-]*):/.exec(url)?.[1]?.toLowerCase();
  if (scheme !== undefined && scheme !== "http" && scheme !== "https") {
    const ports = /^[a-z0-9.-]+:\d/i.test(url) ? " (a host and port need http:// before them)" : "";
    // Before an @ it is not a scheme but a user name or a key, in a URL whose http:// was forgotten.
    const named = url.includes("@") ? "has another scheme" : `has the scheme ${quoted(scheme)}`;
    return [...reasons, `${named}, only http and https are dialled${ports}`];
  }
  const parsed = /^https?:\/\//i.test(url) ? parse(url) : undefined;
  if (!parsed) return [...reasons, "is no http or https URL: write it as http://host:port/path"];
  if (url.includes("#")) reasons.push("has a fragment (#…), which is never sent: remove it");
  return [...reasons, ...secretReasons(parsed)];
}

/** A schema_uri is shown and never dialled: any absolute URI without secrets. */
export function schemaUriReasons(uri: string): string[] {
  const reasons = lengthReasons(uri);
  const wrong = wrongCharacter(uri, "a schema_uri");
  if (wrong) return [...reasons, wrong];
  const parsed = parse(uri);
  if (!parsed) return [...reasons, "is no absolute URI: write it with its scheme"];
  // `user:password@host` without a scheme reads as the scheme `user`.
  if (parsed.host === "" && parsed.pathname.includes("@")) {
    reasons.push("holds an @ but no host, so it may be a user name and password: write it with its scheme and //, without them");
  }
  return [...reasons, ...secretReasons(parsed)];
}

function lengthReasons(url: string): string[] {
  const length = textLength(url);
  return length > LIMITS.urlLength ? [`is ${length} characters long, the limit is ${LIMITS.urlLength}: shorten it`] : [];
}

/** URL parsers forgive these characters, each in its own way, so a text that holds one is not parsed at all. */
function wrongCharacter(url: string, what: string): string | undefined {
  const points = [...url];
  const wrong = points.findIndex((char) => /[\p{C}\p{Z}\\]/u.test(char));
  if (wrong < 0) return undefined;
  const found = describeCharacter(points[wrong] ?? "");
  return `holds ${found} at character ${wrong + 1}: ${what} has no spaces, control characters or backslashes`;
}

function parse(url: string): URL | undefined {
  return URL.canParse(url) ? new URL(url) : undefined;
}

function secretReasons(url: URL): string[] {
  const reasons: string[] = [];
  if (url.username !== "" || url.password !== "")
    reasons.push("holds a user name or password before the host: remove it, every reader of the namespace sees this URL");
  for (const name of new Set(url.searchParams.keys()))
    if (namesCredential(name))
      reasons.push(
        `has the query parameter ${quoted(name)}, which looks like a credential: remove it, every reader of the namespace sees this URL`,
      );
  return reasons;
}

const CREDENTIAL_WORDS = new Set(
  "key auth authorization sig signature pass passwd pwd jwt bearer credential credentials session sessionid sid".split(" "),
);
/** `tavilyApiKey`, `x-amz-signature`, `client_secret`, `access_token`. */
const CREDENTIAL_ENDS = /(?:apikey|accesskey|secretkey|privatekey|token|secret|password|passphrase|signature|credential)$/;

function namesCredential(parameter: string): boolean {
  const name = parameter.toLowerCase().replace(/[^a-z0-9]/g, "");
  return CREDENTIAL_WORDS.has(name) || CREDENTIAL_ENDS.test(name);
}
