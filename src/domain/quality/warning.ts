/** What makes agents choose or call a tool wrongly, in the order of gravity. */
export const WARNING_KINDS = [
  "no-purpose",
  "one-word",
  "duplicate-text",
  "undescribed-parameters",
  "no-example",
  "too-long",
] as const;
export type WarningKind = (typeof WARNING_KINDS)[number];

export interface QualityWarning {
  readonly kind: WarningKind;
  /** What is wrong and what to do about it, one or two sentences. */
  readonly message: string;
}

/** How much each kind keeps agents from using a tool: without a purpose it is never chosen, a long text only costs. */
const GRAVITY: Readonly<Record<WarningKind, number>> = {
  "no-purpose": 8,
  "one-word": 6,
  "duplicate-text": 5,
  "undescribed-parameters": 3,
  "no-example": 2,
  "too-long": 1,
};

/** The larger, the more there is to mend. */
export function gravityOf(warnings: readonly QualityWarning[]): number {
  return warnings.reduce((sum, { kind }) => sum + GRAVITY[kind], 0);
}

/** One warning of each kind, the first that was found, in the order of gravity. */
export function gathered(...found: readonly (readonly QualityWarning[])[]): readonly QualityWarning[] {
  const all = found.flat();
  return WARNING_KINDS.flatMap((kind) => all.find((warning) => warning.kind === kind) ?? []);
}
