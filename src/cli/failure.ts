import { RegistryError } from "../client/registry-error.js";
import { TargetError } from "../client/target.js";
import { CommandError } from "./io.js";

/** A failed command in a few lines: what is wrong, and what to do. */
export function explain(error: unknown): { readonly lines: string[]; readonly exitCode: number } {
  if (error instanceof CommandError) return { lines: error.message.split("\n"), exitCode: error.exitCode };
  if (error instanceof TargetError) return { lines: [error.message], exitCode: 2 };
  if (error instanceof RegistryError) return { lines: explainRegistry(error), exitCode: 1 };
  return { lines: [error instanceof Error ? error.message : String(error)], exitCode: 1 };
}

/** No registry had a word in it: the connection failed, or nothing came back in time. */
export function isUnanswered({ reason, code }: RegistryError): boolean {
  return reason === "" && (code === "UNAVAILABLE" || code === "DEADLINE_EXCEEDED");
}

/** Nobody listens there. */
export function isRefused({ message, cause }: RegistryError): boolean {
  const { details = "" } = (cause ?? {}) as { readonly details?: unknown };
  return /ECONNREFUSED/.test(`${message} ${String(details)}`);
}

function explainRegistry(error: RegistryError): string[] {
  if (error.violations.length > 1) {
    return ["the registry refused this:", ...error.violations.map((v) => `  ${v.field}: ${v.description}`)];
  }
  const lines = [error.message];
  const hint = hintFor(error);
  if (hint !== "") lines.push(hint);
  if (error.substitutes.length > 0) lines.push(`instead you could use: ${error.substitutes.join(", ")}`);
  return lines;
}

function hintFor(error: RegistryError): string {
  switch (error.reason) {
    case "NOT_FOUND":
      return "See what there is with `toolcrib ls` or `toolcrib servers`.";
    case "UNAUTHENTICATED":
      return "Set TOOLCRIB_TOKEN, or TOOLCRIB_TOKEN_FILE, to a token that this registry knows.";
    case "FORBIDDEN":
    case "NOT_OWNER":
      return "Whoever runs the registry gives grants: see Identity in the README.";
    case "LOAD_PENDING":
    case "LOAD_FAILED":
      return "Its server may be starting or away: try again in a moment, and look at `toolcrib servers`.";
    case "BREAKER_OPEN":
      return "It failed again and again, and is looked at again by itself: `toolcrib servers` says when, and why.";
    case "SERVER_ISOLATED":
      return "`toolcrib servers` says since when; `toolcrib resume` puts it back.";
    case "OVERLOADED":
      return "The registry has more to do than it can: try again in a moment.";
    case "DIGEST_MISMATCH":
      return "The tool changed and its server has not registered again yet: try again in a moment.";
    case "INTERNAL": {
      const incident = error.metadata["incident"];
      return incident ? `This is a bug of the registry; its log has more under incident ${incident}.` : "";
    }
    case "":
      return isUnanswered(error)
        ? isRefused(error)
          ? "Start one with `npx toolcrib`, name another with --registry or TOOLCRIB_URL, or ask `toolcrib doctor` what answers there."
          : "`toolcrib doctor` says what answers there; --registry or TOOLCRIB_URL names another."
        : error.code === "UNIMPLEMENTED"
          ? "Something else than a Toolcrib registry answers there, or an older one."
          : "";
    default:
      return "";
  }
}
