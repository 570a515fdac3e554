import type { Violation } from "../fault.js";
import { DIGEST_PATTERN, splitToolId } from "../ids.js";
import { LIMITS } from "../limits.js";
import { nameViolations } from "./names.js";
import { quoted, textViolation } from "./text.js";

/** An empty namespace is the default one. */
export interface QuarantineInput {
  readonly namespace: string;
  readonly toolId: string;
  readonly reason: string;
}

export interface ApproveToolInput {
  /** Empty = default. */
  readonly namespace: string;
  readonly toolId: string;
  /** Empty = the one that the tool has. */
  readonly digest: string;
  /** Whatever definition it has and will have. */
  readonly anyDigest: boolean;
}

/** What is wrong with a quarantine, all at once. */
export function checkQuarantine({ namespace, toolId, reason }: QuarantineInput): Violation[] {
  return [...checkTool(namespace, toolId), ...reasonViolations(reason)];
}

/** What is wrong with an approval, all at once. */
export function checkApproveTool({ namespace, toolId, digest, anyDigest }: ApproveToolInput): Violation[] {
  const violations = checkTool(namespace, toolId);
  if (digest === "") return violations;
  if (!DIGEST_PATTERN.test(digest)) violations.push({ field: "digest", description: `is sha256: and 64 hex digits, not ${quoted(digest)}` });
  if (anyDigest) violations.push({ field: "any_digest", description: "approves whatever definition there is: leave digest out" });
  return violations;
}

function checkTool(namespace: string, toolId: string): Violation[] {
  const parts = splitToolId(toolId);
  return [
    ...(namespace === "" ? [] : nameViolations("namespace", "namespace", namespace)),
    ...(parts
      ? [...nameViolations("server_id", "tool_id", parts.serverId), ...nameViolations("tool_name", "tool_id", parts.toolName)]
      : [{ field: "tool_id", description: `is server_id/tool_name, not ${quoted(toolId)}` }]),
  ];
}

function reasonViolations(reason: string): Violation[] {
  if (reason.trim() === "") return [{ field: "reason", description: "is empty: say why, for whoever looks for the tool" }];
  const violation = textViolation("reason", reason, LIMITS.whyLength);
  return violation ? [violation] : [];
}
