/** Overlays as bytes: inside of a tool, and in the notes that keep them. */
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import type { OverlayCodec, OverlayOutcome } from "../../catalogue/ports.js";
import type { LabelTexts, Laid, Overlay } from "../../domain/overlay.js";
import {
  type OverlayOutcome as WireOutcome,
  OverlayOutcomeSchema,
  OverlayOutcomesSchema,
  OverlaySchema,
  OverlayShelfSchema,
  type LabelTexts as WireTexts,
  type Overlay as WireOverlay,
} from "../../gen/toolcrib/storage/v1/storage_pb.js";

type WireInit = MessageInitShape<typeof OverlaySchema>;

const FORMAT = 1;

/** Both notes are read by versions that know less: what they add does not raise the format. */
export const overlayCodec: OverlayCodec = {
  encodeShelf: (overlays) => toBinary(OverlayShelfSchema, create(OverlayShelfSchema, { format: FORMAT, overlays: overlays.map(wireOverlay) })),
  decodeShelf: (bytes) => {
    const { format, overlays } = fromBinary(OverlayShelfSchema, bytes);
    if (format > FORMAT) throw new Error(`overlays are kept in format ${format}, and this version reads ${FORMAT}: upgrade this replica`);
    return overlays.map((overlay) => overlayOf(overlay, overlay.toolName));
  },
  encodeOutcomes: (outcomes) => toBinary(OverlayOutcomesSchema, create(OverlayOutcomesSchema, { format: FORMAT, outcomes: outcomes.map(wireOutcome) })),
  decodeOutcomes: (bytes) => {
    const { format, outcomes } = fromBinary(OverlayOutcomesSchema, bytes);
    if (format > FORMAT) throw new Error(`outcomes of overlays are kept in format ${format}, and this version reads ${FORMAT}: upgrade this replica`);
    return outcomes.map(outcomeOf);
  },
};

function wireOutcome({ toolName, version, ...counts }: OverlayOutcome): MessageInitShape<typeof OverlayOutcomeSchema> {
  return {
    toolName,
    version,
    overlaySuccesses: BigInt(counts.overlaySuccesses),
    overlayFailures: BigInt(counts.overlayFailures),
    ownSuccesses: BigInt(counts.ownSuccesses),
    ownFailures: BigInt(counts.ownFailures),
  };
}

function outcomeOf({ toolName, version, ...counts }: WireOutcome): OverlayOutcome {
  return {
    toolName,
    version,
    overlaySuccesses: Number(counts.overlaySuccesses),
    overlayFailures: Number(counts.overlayFailures),
    ownSuccesses: Number(counts.ownSuccesses),
    ownFailures: Number(counts.ownFailures),
  };
}

/** The name and, in a trial, the registrant's own stub are the tool's. */
export function wireLaid({ overlay, own }: Laid): WireInit {
  return { ...wireOverlay({ ...overlay, toolName: "" }), ...(!overlay.trial && { own: own as Uint8Array<ArrayBuffer> }) };
}

export function laidOf(wire: WireOverlay, toolName: string, stub: Uint8Array): Laid {
  return { overlay: overlayOf(wire, toolName), own: wire.own.byteLength > 0 ? wire.own : stub };
}

function wireOverlay({ toolName, texts, madeFor, digest, trial, by, atMs }: Overlay): WireInit {
  return { toolName, texts: wireTexts(texts), madeFor: wireTexts(madeFor), digest, trial, by, atMs: BigInt(atMs) };
}

function overlayOf(wire: WireOverlay, toolName: string): Overlay {
  const { texts, madeFor, digest, trial, by, atMs } = wire;
  return { toolName, texts: textsOf(texts), madeFor: textsOf(madeFor), digest, trial, by, atMs: Number(atMs) };
}

function wireTexts({ briefDescription, keywords, useWhen }: LabelTexts) {
  return { briefDescription, keywords: [...keywords], useWhen };
}

function textsOf(wire: WireTexts | undefined): LabelTexts {
  return { briefDescription: wire?.briefDescription ?? "", keywords: wire?.keywords ?? [], useWhen: wire?.useWhen ?? "" };
}
