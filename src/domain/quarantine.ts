/** A good tool that is withheld until an operator approves its definition. */

export interface Quarantine {
  readonly toolName: string;
  /** Why, in the words of whoever quarantined it. */
  readonly reason: string;
  /** Principal that quarantined it. */
  readonly by: string;
  readonly atMs: number;
  /** The one definition with which the tool is listed; empty = none. */
  readonly approvedDigest: string;
}

/** A tool as far as quarantines are concerned. */
interface Quarantined {
  /** Empty until the definition was first seen. */
  readonly digest: string;
  readonly quarantine?: Quarantine;
}

/** Whether nobody may be offered the tool. An unknown definition is never the approved one. */
export function isWithheld({ digest, quarantine }: Quarantined): boolean {
  return quarantine !== undefined && (quarantine.approvedDigest === "" || quarantine.approvedDigest !== digest);
}

/** The tools that lists show; the same list where that is all of them. */
export function shownOf<T extends Quarantined>(tools: readonly T[]): readonly T[] {
  return tools.some(isWithheld) ? tools.filter((tool) => !isWithheld(tool)) : tools;
}

export function sameQuarantine(a: Quarantine | undefined, b: Quarantine | undefined): boolean {
  if (!a || !b) return a === b;
  return a === b || (a.reason === b.reason && a.by === b.by && a.atMs === b.atMs && a.approvedDigest === b.approvedDigest);
}

/** A sentence without its end. */
export function whyWithheld({ digest, quarantine }: Quarantined): string {
  const { by = "", reason = "", approvedDigest = "" } = quarantine ?? {};
  if (approvedDigest === "") return `it is quarantined by ${by} until its definition is approved: ${reason}`;
  const now = digest === "" ? "its definition is not known" : "its definition is no longer the approved one";
  return `it is quarantined by ${by}, and ${now}: ${reason}`;
}
