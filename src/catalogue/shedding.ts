import { Fault } from "../domain/fault.js";
import { isShed, type OverloadLevel, type Sheddable } from "../domain/overload.js";
import type { Random } from "./ports.js";

/** Told apart so that those who were refused together do not come back together. Longer than the overload takes to fall by a level. */
const RETRY_MIN_MS = 2_000;
const RETRY_SPREAD_MS = 4_000;

const NAMES: Readonly<Record<Sheddable, string>> = {
  register: "registrations",
  load: "loads of definitions that are not in memory",
  watch: "new watches",
};

/** Refuses, before any work is done, what a replica with too much to do sheds. */
export class Shedding {
  constructor(
    private readonly level: () => OverloadLevel,
    private readonly random: Pick<Random, "next">,
    private readonly onShed: (what: Sheddable) => void,
  ) {}

  /** Why this is refused now; undefined while it is not. Counted as shed, so ask only to refuse. */
  refusal(what: Sheddable): Fault | undefined {
    const level = this.level();
    if (!isShed(level, what)) return undefined;
    this.onShed(what);
    const message = `this replica has more to do than it can and takes no ${NAMES[what]} for a moment: try again, here or at another one`;
    const retryAfterMs = Math.round(RETRY_MIN_MS + this.random.next() * RETRY_SPREAD_MS);
    return new Fault("OVERLOADED", message, { metadata: { shed: what, level: String(level) }, retryAfterMs });
  }

  /** Throws Fault OVERLOADED. */
  admit(what: Sheddable): void {
    const refusal = this.refusal(what);
    if (refusal) throw refusal;
  }
}
