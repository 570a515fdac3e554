/** Other words for a tool's label, approved by an operator. The definition, and what else the registrant said, stay as they are. */
import { createHash } from "node:crypto";
import type { StubFields } from "./stub.js";

/** The parts of a label that an overlay may replace. */
export interface LabelTexts {
  readonly briefDescription: string;
  readonly keywords: readonly string[];
  readonly useWhen: string;
}

export interface Overlay {
  readonly toolName: string;
  /** An empty part leaves the registrant's own. */
  readonly texts: LabelTexts;
  /** The registrant's own texts that it was made for. */
  readonly madeFor: LabelTexts;
  /** The definition that it was made for. */
  readonly digest: string;
  /** Only half of the callers of the gate are shown it; lists show the registrant's own label. */
  readonly trial: boolean;
  /** Principal that approved it. */
  readonly by: string;
  readonly atMs: number;
}

/** What a tool has of an overlay that fits it. */
export interface Laid {
  readonly overlay: Overlay;
  /** The registrant's own stub, encoded. */
  readonly own: Uint8Array;
}

/** A tool as far as overlays are concerned. */
interface Overlaid {
  readonly stub: Uint8Array;
  readonly overlay?: Laid;
}

export function textsOf({ briefDescription, keywords, useWhen }: LabelTexts): LabelTexts {
  return { briefDescription, keywords: [...keywords], useWhen };
}

export function sameTexts(a: LabelTexts, b: LabelTexts): boolean {
  return textKey(a) === textKey(b);
}

/** Names these words for this definition and this label: the same on every replica, whoever approved them when. */
export function versionOf({ texts, madeFor, digest }: Pick<Overlay, "texts" | "madeFor" | "digest">): string {
  const hash = createHash("sha256").update(JSON.stringify([textKey(texts), textKey(madeFor), digest]));
  return `o${hash.digest("hex").slice(0, 15)}`;
}

/** What names the label that the tool shows: empty for its registrant's own. */
export function labelVersionOf({ overlay }: Overlaid): string {
  return overlay && !overlay.overlay.trial ? versionOf(overlay.overlay) : "";
}

/** Whether both say the same to the same callers. */
export function sameOverlay(a: Overlay | undefined, b: Overlay | undefined): boolean {
  if (!a || !b) return a === b;
  return a === b || (a.trial === b.trial && versionOf(a) === versionOf(b));
}

export function laidOver(own: StubFields, { texts }: Pick<Overlay, "texts">): StubFields {
  return {
    ...own,
    briefDescription: texts.briefDescription || own.briefDescription,
    keywords: texts.keywords.length > 0 ? texts.keywords : own.keywords,
    useWhen: texts.useWhen || own.useWhen,
  };
}

/** What has changed since the overlay was made; undefined when it fits. */
export function misfitOf(own: StubFields, overlay: Pick<Overlay, "digest" | "madeFor">): "definition" | "label" | undefined {
  if (own.digest !== overlay.digest) return "definition";
  return sameTexts(own, overlay.madeFor) ? undefined : "label";
}

/** The registrant's own label, encoded. */
export function ownStubOf(tool: Overlaid): Uint8Array {
  return tool.overlay?.own ?? tool.stub;
}

/** The tool as its registrant labels it. */
export function bareTool<T extends Overlaid>(tool: T): T | (Omit<T, "overlay"> & { readonly stub: Uint8Array }) {
  if (!tool.overlay) return tool;
  const { overlay, ...rest } = tool;
  return { ...rest, stub: overlay.own };
}

function textKey({ briefDescription, keywords, useWhen }: LabelTexts): string {
  return JSON.stringify([briefDescription, keywords, useWhen]);
}
