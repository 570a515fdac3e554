/** What one look at an instance says. */
export type Verdict =
  /** `tookMs` is undefined where the time says nothing, as of a long list. */
  | { readonly kind: "ok"; readonly tookMs: number | undefined }
  /** Somebody is there and answers, though not with what was asked for: no failure for the breaker. */
  | {
      readonly kind: "answered";
      /** A word such as `AUTH_REQUIRED`. */
      readonly reason: string;
      readonly message: string;
      readonly retryAfterMs: number | undefined;
    }
  | {
      readonly kind: "failed";
      /** Somebody answered, but no MCP server that could be called. */
      readonly reachable: boolean;
      readonly reason: string;
      readonly message: string;
      readonly retryAfterMs: number | undefined;
    }
  /** The registry may not dial it: that says nothing about the server, and no call gets there either. */
  | { readonly kind: "barred"; readonly reason: string; readonly message: string };

/** Reasons that conditions of their own are made of. */
export const AUTH_REQUIRED = "AUTH_REQUIRED";
export const DRAINING = "DRAINING";

/** Whether a call by the same way would have got through. */
export function isGood(verdict: Verdict): boolean {
  return verdict.kind === "ok" || verdict.kind === "answered";
}
