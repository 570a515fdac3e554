import { admitDeclaredTool } from "../../domain/admission/tool.js";
import { setDigest, type SetMember } from "../../domain/digest.js";
import { sortedSet } from "../../domain/filter.js";
import { compareText } from "../../domain/ids.js";
import { LIMITS } from "../../domain/limits.js";
import type { RejectedTool, ServerRecord, Tool } from "../../domain/server.js";
import type { DeclaredTool, ToolOutcome } from "../api.js";
import type { Blob, StubCodec } from "../ports.js";
import { overLimit } from "./listed.js";

/** A declared set as the catalogue keeps it. */
export interface DeclaredSet {
  /** In name order. */
  readonly tools: readonly Tool[];
  readonly setDigest: string;
  readonly rejected: readonly RejectedTool[];
  readonly rejectedCount: number;
  readonly blobs: readonly Blob[];
  /** Name and rejection of each tool, in the order sent; accepted ones have no reasons. */
  readonly sent: readonly RejectedTool[];
}

/** Judges every tool on its own, so that a bad one never hides its siblings (P9). */
export function readDeclared(
  serverId: string,
  serverTags: readonly string[],
  declared: readonly DeclaredTool[],
  stubs: StubCodec,
  nowMs: number,
): DeclaredSet {
  const tools: Tool[] = [];
  const members: SetMember[] = [];
  const blobs: Blob[] = [];
  const sent: RejectedTool[] = [];
  let stubBytes = 0;
  declared.forEach((one, index) => {
    const admitted = admitDeclaredTool(one, index);
    if (!admitted.ok) {
      sent.push({ name: admitted.name, reasons: admitted.reasons });
      return;
    }
    const { definition, label } = admitted;
    const tool = stubs.encode(
      { ...label, serverId, tags: sortedSet([...serverTags, ...label.tags]) },
      label.digest !== "",
    );
    stubBytes += tool.stub.byteLength;
    const reason = overLimit(tools.length + 1, stubBytes);
    sent.push({ name: tool.name, reasons: reason ? [reason] : [] });
    if (reason) return;
    tools.push(tool);
    // The size may differ between spellings of one definition, and says nothing about the set.
    const member = definition ? stubs.encode({ ...stubs.decode(tool.stub), sizeBytes: 0 }, true) : tool;
    members.push({ name: tool.name, stub: member.stub, definitionDigest: tool.digest });
    if (definition) blobs.push({ digest: definition.digest, bytes: definition.bytes, fetchedAtMs: nowMs });
  });
  const rejected = sent.filter((s) => s.reasons.length > 0);
  return {
    tools: tools.sort((a, b) => compareText(a.name, b.name)),
    setDigest: setDigest(members),
    rejected: rejected.slice(0, LIMITS.rejectedKept),
    rejectedCount: rejected.length,
    blobs,
    sent,
  };
}

/** What became of each tool, against the record as it was. */
export function outcomesOf(set: DeclaredSet, tools: readonly Tool[], before: ServerRecord | undefined): ToolOutcome[] {
  const known = new Map((before?.tools ?? []).map((t) => [t.name, t]));
  const now = new Map(tools.map((t) => [t.name, t]));
  return set.sent.map(({ name, reasons }) => {
    if (reasons.length > 0) return { name, outcome: "rejected", reasons, digest: "" };
    const tool = now.get(name);
    const old = known.get(name);
    const same = tool !== undefined && old !== undefined && Buffer.compare(tool.stub, old.stub) === 0;
    return { name, outcome: same ? "unchanged" : "accepted", reasons, digest: tool?.digest ?? "" };
  });
}
