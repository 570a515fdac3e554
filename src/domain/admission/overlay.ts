import type { Violation } from "../fault.js";
import { DIGEST_PATTERN } from "../ids.js";
import { LIMITS } from "../limits.js";
import { laidOver, type LabelTexts } from "../overlay.js";
import { EMPTY_STUB, type StubFields } from "../stub.js";
import { checkServerName } from "./isolation.js";
import { nameReasons } from "./names.js";
import { ReasonList } from "./reasons.js";
import { quoted } from "./text.js";
import { judgeLabel, stubSize } from "./tool.js";

export interface ProposedOverlay {
  readonly toolName: string;
  readonly texts: LabelTexts;
  readonly digest: string;
  readonly madeFor: LabelTexts;
}

export interface ApproveInput {
  /** Empty = default. */
  readonly namespace: string;
  readonly serverId: string;
  readonly overlays: readonly ProposedOverlay[];
  readonly trial: boolean;
}

/** What is wrong with an approval whatever the catalogue holds, all at once. */
export function checkApproval({ namespace, serverId, overlays }: ApproveInput): Violation[] {
  const violations = checkServerName(namespace, serverId);
  if (overlays.length === 0) violations.push({ field: "overlays", description: "is empty: at least one is needed" });
  if (overlays.length > LIMITS.overlaysAtOnce) {
    const description = `holds ${overlays.length} entries, the limit is ${LIMITS.overlaysAtOnce}: send the others after them`;
    return [...violations, { field: "overlays", description }];
  }
  const seen = new Set<string>();
  for (const [i, overlay] of overlays.entries()) {
    const field = `overlays[${i}]`;
    violations.push(...nameReasons("tool_name", overlay.toolName).map((description) => ({ field: `${field}.tool_name`, description })));
    if (seen.has(overlay.toolName))
      violations.push({ field: `${field}.tool_name`, description: `${quoted(overlay.toolName)} stands here twice: one overlay a tool` });
    seen.add(overlay.toolName);
    if (!DIGEST_PATTERN.test(overlay.digest))
      violations.push({ field: `${field}.digest`, description: `is ${quoted(overlay.digest, 80)}, a digest is sha256: and 64 lower-case hex digits` });
    violations.push(...textsViolations(`${field}.texts`, overlay.texts));
  }
  return violations;
}

/** The same rules as for a label that a registrant declares. */
export function textsViolations(field: string, texts: LabelTexts): Violation[] {
  if (texts.briefDescription === "" && texts.keywords.length === 0 && texts.useWhen === "")
    return [{ field, description: "says nothing: give brief_description, keywords or use_when" }];
  const reasons = new ReasonList();
  judgeLabel({ ...EMPTY_STUB, ...texts, name: "" }, true, field, reasons);
  return reasons.done().map((reason) => {
    const space = reason.indexOf(" ");
    if (!reason.startsWith(field)) return { field, description: reason };
    return { field: reason.slice(0, space), description: reason.slice(space + 1) };
  });
}

/** A label must fit into one message of a watch, whoever wrote it. */
export function laidOverViolation(field: string, own: StubFields, texts: LabelTexts): Violation | undefined {
  const size = stubSize(laidOver(own, { texts }));
  if (size <= LIMITS.stubBytes) return undefined;
  return { field, description: `the label would have about ${size} bytes with it, the limit is ${LIMITS.stubBytes}: shorten it` };
}
