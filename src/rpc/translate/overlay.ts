/** Overlays of labels, between the use-cases' values and protobuf. What a value may be is decided there. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { OverlayView, WithdrawInput } from "../../catalogue/api.js";
import type { ApproveInput } from "../../domain/admission/overlay.js";
import { LIMITS } from "../../domain/limits.js";
import type { LabelTexts } from "../../domain/overlay.js";
import {
  type ApproveOverlaysRequest,
  type LabelTexts as WireTexts,
  LabelTextsSchema,
  type ListOverlaysRequest,
  OverlaySchema,
  Overlay_State,
  type Overlay as WireOverlay,
  type WithdrawOverlaysRequest,
} from "../../gen/toolcrib/v1/admin_service_pb.js";
import { Checks } from "./checks.js";

export function toApproveInput({ namespace, serverId, overlays, trial }: ApproveOverlaysRequest): ApproveInput {
  return {
    namespace,
    serverId,
    trial,
    overlays: overlays.map(({ toolName, texts, digest, madeFor }) => ({ toolName, digest, texts: toTexts(texts), madeFor: toTexts(madeFor) })),
  };
}

export function toWithdrawInput({ namespace, serverId, toolNames }: WithdrawOverlaysRequest): WithdrawInput {
  const checks = new Checks();
  checks.count("tool_names", toolNames.length, LIMITS.overlaysAtOnce);
  for (const [i, name] of toolNames.slice(0, LIMITS.overlaysAtOnce).entries()) checks.name("tool_name", `tool_names[${i}]`, name);
  checks.done();
  return { namespace, serverId, toolNames };
}

export function toOverlaysQuery({ namespace, serverIds }: ListOverlaysRequest) {
  const checks = new Checks();
  checks.count("server_ids", serverIds.length, LIMITS.filterServers);
  for (const [i, id] of serverIds.slice(0, LIMITS.filterServers).entries()) checks.name("server_id", `server_ids[${i}]`, id);
  checks.done();
  return { namespace, serverIds };
}

function toTexts(texts: WireTexts | undefined): LabelTexts {
  return { briefDescription: texts?.briefDescription ?? "", keywords: texts?.keywords ?? [], useWhen: texts?.useWhen ?? "" };
}

const STATE: Readonly<Record<OverlayView["state"], Overlay_State>> = {
  shown: Overlay_State.SHOWN,
  trial: Overlay_State.TRIAL,
  inactive: Overlay_State.INACTIVE,
};

export function fromOverlay({ toolId, overlay, version, state, why, outcomes }: OverlayView): WireOverlay {
  const { texts, madeFor, digest, trial, by, atMs } = overlay;
  return create(OverlaySchema, {
    toolId,
    version,
    state: STATE[state],
    why,
    texts: fromTexts(texts),
    madeFor: fromTexts(madeFor),
    digest,
    approvedBy: by,
    approvedAt: timestampFromMs(atMs),
    trial,
    ...(outcomes && {
      withOverlay: { successes: BigInt(outcomes.overlaySuccesses), failures: BigInt(outcomes.overlayFailures) },
      withOwn: { successes: BigInt(outcomes.ownSuccesses), failures: BigInt(outcomes.ownFailures) },
    }),
  });
}

function fromTexts({ briefDescription, keywords, useWhen }: LabelTexts): MessageInitShape<typeof LabelTextsSchema> {
  return { briefDescription, keywords: [...keywords], useWhen };
}
