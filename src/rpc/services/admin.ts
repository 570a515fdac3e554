/** The RPCs of AdminService. Requests are judged where the use-cases are, after the caller's rights. */
import { create } from "@bufbuild/protobuf";
import type { RegistryApi, ServerWrite } from "../../catalogue/api.js";
import { formatRevision } from "../../domain/revision.js";
import {
  AdminService,
  IsolateServerResponseSchema,
  RefreshServerResponseSchema,
  ResumeServerResponseSchema,
} from "../../gen/toolcrib/v1/admin_service_pb.js";
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

function shown({ server, position }: ServerWrite, api: RegistryApi) {
  return { server: fromRecord(server, position, api), revision: formatRevision(position) };
}

export const ADMIN: readonly UnaryMethod[] = [isolateServer, resumeServer, refreshServer];
