export type Level = "ok" | "warn" | "fail";

/** One thing that was looked at. */
export interface Finding {
  /** What was looked at: `connection`, `credentials`, `store`, `server memory`, … */
  readonly check: string;
  readonly level: Level;
  /** How it is, one sentence. */
  readonly text: string;
  /** What to do about it; absent where nothing is to be done. */
  readonly todo?: string;
}

export function ok(check: string, text: string): Finding {
  return { check, level: "ok", text };
}

export function warn(check: string, text: string, todo: string): Finding {
  return { check, level: "warn", text, todo };
}

export function fail(check: string, text: string, todo: string): Finding {
  return { check, level: "fail", text, todo };
}
