/** Toolsets: between protobuf and the use-cases' values. What a value may be is decided there. */
import { create } from "@bufbuild/protobuf";
import { type Duration, durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { CreateToolset, Toolset, UpdateToolset } from "../../catalogue/toolsets/api.js";
import {
  type CreateToolsetRequest,
  type Toolset as WireToolset,
  ToolsetSchema,
  type UpdateToolsetRequest,
} from "../../gen/toolcrib/v1/toolset_service_pb.js";

export function toCreate({ namespace, toolIds, facts, idleTtl }: CreateToolsetRequest): CreateToolset {
  return { namespace, toolIds, facts: new Map(Object.entries(facts)), idleMs: toMs(idleTtl) };
}

export function toUpdate(request: UpdateToolsetRequest): UpdateToolset {
  const { namespace, handle, etag, tools, setFacts, removeFacts, idleTtl } = request;
  return { namespace, handle, etag, toolIds: tools?.toolIds, setFacts: new Map(Object.entries(setFacts)), removeFacts, idleMs: toMs(idleTtl) };
}

export function fromToolset({ handle, toolIds, facts, etag, idleMs, expiresAtMs, createdAtMs }: Toolset): WireToolset {
  return create(ToolsetSchema, {
    handle,
    toolIds: [...toolIds],
    facts: Object.fromEntries(facts),
    etag,
    idleTtl: durationFromMs(idleMs),
    expireTime: timestampFromMs(expiresAtMs),
    createTime: timestampFromMs(createdAtMs),
  });
}

/** Whole milliseconds, rounded up: nothing goes before its time. */
function toMs(duration: Duration | undefined): number | undefined {
  return duration && Math.ceil(Number(duration.seconds) * 1_000 + duration.nanos / 1e6);
}
