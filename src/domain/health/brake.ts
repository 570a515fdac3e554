/** The brake on mass expiry: when many leases run out at once, it is likelier that we failed than that they all died. */

/** More than this share of all leases due in one sweep engages the brake, … */
export const BRAKE_SHARE = 0.15;
/** … if there are at least this many: in a small registry a few ends are ordinary. */
export const BRAKE_MIN_DUE = 5;
/** Of all leases, at least one: how many may expire per sweep of those that the brake gave a second term already. */
export const BRAKED_EXPIRE_SHARE = 0.05;

export interface SweepFacts {
  /** All leases of the partition, due or not. */
  readonly total: number;
  /** Number of due leases, though `due` may hold fewer. */
  readonly dueTotal: number;
  /** Longest overdue first. */
  readonly due: readonly { readonly leaseId: string; readonly braked: boolean }[];
  /** Store time and this process's monotonic clock advanced alike since its last sweep. */
  readonly clocksAgree: boolean;
  readonly storeAwayLongerThanHalfTtl: boolean;
  readonly chainJustBroken: boolean;
  readonly justOpened: boolean;
}

export type BrakeReason =
  | "clocks-disagree"
  | "chain-broken"
  | "just-opened"
  | "store-away"
  | "mass-due"
  /** Nothing is amiss now, but braked leases are still being let go bit by bit. */
  | "draining";

/** Which leases end and which get a second term; the others stay due until a later sweep. */
export interface Leases {
  readonly expire: readonly string[];
  readonly extend: readonly string[];
}

export type SweepDecision =
  | ({ readonly brake: "off" } & Leases)
  | ({ readonly brake: "on"; readonly reason: BrakeReason } & Leases);

export function decideSweep(facts: SweepFacts): SweepDecision {
  if (!facts.clocksAgree) return { brake: "on", reason: "clocks-disagree", expire: [], extend: [] };
  const fresh = facts.due.filter((lease) => !lease.braked).map((lease) => lease.leaseId);
  const braked = facts.due.filter((lease) => lease.braked).map((lease) => lease.leaseId);
  const drained = braked.slice(0, brakedAllowance(facts.total));
  const reason = engaged(facts);
  if (reason) return { brake: "on", reason, expire: drained, extend: fresh };
  const expire = [...fresh, ...drained];
  return drained.length < braked.length
    ? { brake: "on", reason: "draining", expire, extend: [] }
    : { brake: "off", expire, extend: [] };
}

/** How many braked leases may expire in one sweep. */
export function brakedAllowance(total: number): number {
  return Math.max(1, Math.floor(total * BRAKED_EXPIRE_SHARE));
}

function engaged(facts: SweepFacts): BrakeReason | undefined {
  if (facts.chainJustBroken) return "chain-broken";
  if (facts.justOpened) return "just-opened";
  if (facts.storeAwayLongerThanHalfTtl) return "store-away";
  const mass = facts.dueTotal >= BRAKE_MIN_DUE && facts.dueTotal > facts.total * BRAKE_SHARE;
  return mass ? "mass-due" : undefined;
}
