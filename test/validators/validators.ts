/** All promises with what tells their breach. */
import { breaker } from "./breaker.js";
import type { History, Validator, Violation } from "./history.js";
import { order } from "./p1-order.js";
import { noGap } from "./p2-no-gap.js";
import { bookmark } from "./p3-bookmark.js";
import { resume } from "./p4-resume.js";
import { atomic } from "./p5-atomic.js";
import { lease } from "./p6-lease.js";
import { heal } from "./p7-heal.js";
import { serve } from "./p8-serve.js";
import { isolate } from "./p9-isolate.js";
import { verbatim } from "./p10-verbatim.js";
import { stayHome } from "./p11-stay-home.js";
import { sameAnswer } from "./p12-same-answer.js";

export const VALIDATORS = {
  P1: order,
  P2: noGap,
  P3: bookmark,
  P4: resume,
  P5: atomic,
  P6: lease,
  P7: heal,
  P8: serve,
  P9: isolate,
  P10: verbatim,
  P11: stayHome,
  P12: sameAnswer,
  breaker,
} as const satisfies Record<string, Validator>;

export type Promised = keyof typeof VALIDATORS;

export const PROMISES = Object.keys(VALIDATORS) as readonly Promised[];

/** What is broken in a history, promise by promise. */
export function violations(history: History, promises: readonly Promised[] = PROMISES): Violation[] {
  return promises.flatMap((promise) => VALIDATORS[promise](history));
}

/** One line a violation, for an assertion that compares with nothing. */
export function verdict(history: History, promises: readonly Promised[] = PROMISES): string[] {
  return violations(history, promises).map((v) => v.text);
}
