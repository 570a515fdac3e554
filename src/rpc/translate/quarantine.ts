/** Withheld tools as readers see them. */
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { QuarantinedView } from "../../catalogue/api.js";
import { type QuarantinedTool, QuarantinedToolSchema } from "../../gen/toolcrib/v1/server_pb.js";

export function fromQuarantined({ toolId, reason, by, sinceMs, digest, approvedDigest }: QuarantinedView): QuarantinedTool {
  return create(QuarantinedToolSchema, { toolId, reason, digest, approvedDigest, quarantinedBy: by, since: timestampFromMs(sinceMs) });
}
