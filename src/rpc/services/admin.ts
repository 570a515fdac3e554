/** The RPCs of AdminService. Requests are judged where the use-cases are, after the caller's rights. */
import { create } from "@bufbuild/protobuf";
import type { RegistryApi, ServerWrite } from "../../catalogue/api.js";
import { formatRevision } from "../../domain/revision.js";
import {
  AdminService,
  ApproveOverlaysResponseSchema,
  ApproveToolResponseSchema,
  IsolateServerResponseSchema,
  ListOverlaysResponseSchema,
  QuarantineToolResponseSchema,
  RefreshServerResponseSchema,
  ResumeServerResponseSchema,
  WithdrawOverlaysResponseSchema,
} from "../../gen/toolcrib/v1/admin_service_pb.js";
import { fromOverlay, toApproveInput, toOverlaysQuery, toWithdrawInput } from "../translate/overlay.js";
import { fromQuarantined } from "../translate/quarantine.js";
import { fromRecord } from "../translate/server.js";
import { type UnaryMethod, encode, method } from "./method.js";

const rpc = AdminService.method;

const isolateServer = method(rpc.isolateServer, async (api, { namespace, serverId, why }) => {
  const output = await api.isolate({ namespace, serverId, why });
  return encode(IsolateServerResponseSchema, create(IsolateServerResponseSchema, shown(output, api)));
});

const resumeServer = method(rpc.resumeServer, async (api, { namespace, serverId }) => {
  const output = await api.resume({ namespace, serverId });
  const body = { ...shown(output, api), resumed: output.resumed };
  return encode(ResumeServerResponseSchema, create(ResumeServerResponseSchema, body));
});

const refreshServer = method(rpc.refreshServer, async (api, { namespace, serverId }) => {
  const output = await api.refresh({ namespace, serverId });
  const body = { ...shown(output, api), listed: output.listed, changed: output.changed };
  return encode(RefreshServerResponseSchema, create(RefreshServerResponseSchema, body));
});

const approveOverlays = method(rpc.approveOverlays, async (api, request) => {
  const { position, changed, overlays } = await api.approveOverlays(toApproveInput(request));
  const body = { revision: formatRevision(position), changed, overlays: overlays.map(fromOverlay) };
  return encode(ApproveOverlaysResponseSchema, create(ApproveOverlaysResponseSchema, body));
});

const withdrawOverlays = method(rpc.withdrawOverlays, async (api, request) => {
  const { position, toolNames } = await api.withdrawOverlays(toWithdrawInput(request));
  const body = { revision: position ? formatRevision(position) : "", toolNames: [...toolNames] };
  return encode(WithdrawOverlaysResponseSchema, create(WithdrawOverlaysResponseSchema, body));
});

const listOverlays = method(rpc.listOverlays, async (api, request) => {
  const { overlays, position } = await api.overlays(toOverlaysQuery(request));
  const body = { overlays: overlays.map(fromOverlay), revision: formatRevision(position) };
  return encode(ListOverlaysResponseSchema, create(ListOverlaysResponseSchema, body));
});

const quarantineTool = method(rpc.quarantineTool, async (api, { namespace, toolId, reason }) => {
  const { position, tool, withheld } = await api.quarantineTool({ namespace, toolId, reason });
  const body = { tool: fromQuarantined(tool), revision: formatRevision(position), withheld };
  return encode(QuarantineToolResponseSchema, create(QuarantineToolResponseSchema, body));
});

const approveTool = method(rpc.approveTool, async (api, { namespace, toolId, digest, anyDigest }) => {
  const { position, released, tool, approvedDigest } = await api.approveTool({ namespace, toolId, digest, anyDigest });
  const body = { revision: formatRevision(position), released, approvedDigest, ...(tool && { tool: fromQuarantined(tool) }) };
  return encode(ApproveToolResponseSchema, create(ApproveToolResponseSchema, body));
});

function shown({ server, position }: ServerWrite, api: RegistryApi) {
  return { server: fromRecord(server, position, api), revision: formatRevision(position) };
}

export const ADMIN: readonly UnaryMethod[] = [
  isolateServer,
  resumeServer,
  refreshServer,
  approveOverlays,
  withdrawOverlays,
  listOverlays,
  quarantineTool,
  approveTool,
];
