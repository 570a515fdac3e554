import type { RegistryError } from "../registry-error.js";
import type { RelistCause } from "./state.js";

/** What the end of a stream asks for. */
export type Verdict =
  | { readonly kind: "resume" }
  /** The registry dropped a slow reader, who goes on after what it has read: never later, whatever was sent. */
  | { readonly kind: "too-slow" }
  | { readonly kind: "relist"; readonly cause: RelistCause }
  /** The credential is not good, or not good any more; it may be replaced. */
  | { readonly kind: "unauthenticated" }
  | { readonly kind: "refused" };

/** `resumed`: the stream was asked for with a token. */
export function verdictOn(error: RegistryError, resumed: boolean): Verdict {
  if (error.code === "OUT_OF_RANGE") return { kind: "relist", cause: causeOf(error) };
  if (error.reason === "INVALID_TOKEN" && resumed) return { kind: "relist", cause: "token" };
  if (error.reason === "WATCHER_TOO_SLOW") return { kind: "too-slow" };
  if (error.code === "UNAUTHENTICATED") return { kind: "unauthenticated" };
  return error.transient ? { kind: "resume" } : { kind: "refused" };
}

function causeOf({ metadata }: RegistryError): RelistCause {
  const { cause } = metadata;
  return cause === "compacted" || cause === "ahead" ? cause : "chain";
}
