/** The RPCs of ToolsetService. Requests are judged where the use-cases are, after the caller's rights. */
import { create } from "@bufbuild/protobuf";
import {
  CreateToolsetResponseSchema,
  DeleteToolsetResponseSchema,
  GetToolsetResponseSchema,
  ToolsetService,
  UpdateToolsetResponseSchema,
} from "../../gen/toolcrib/v1/toolset_service_pb.js";
import { fromToolset, toCreate, toUpdate } from "../translate/toolset.js";
import { type UnaryMethod, encode, method } from "./method.js";

const rpc = ToolsetService.method;

const createToolset = method(rpc.createToolset, async (api, request) => {
  const toolset = fromToolset(await api.toolsets.create(toCreate(request)));
  return encode(CreateToolsetResponseSchema, create(CreateToolsetResponseSchema, { toolset }));
});

const getToolset = method(rpc.getToolset, async (api, { namespace, handle, touch }) => {
  const toolset = fromToolset(await api.toolsets.get({ namespace, handle, touch }));
  return encode(GetToolsetResponseSchema, create(GetToolsetResponseSchema, { toolset }));
});

const updateToolset = method(rpc.updateToolset, async (api, request) => {
  const toolset = fromToolset(await api.toolsets.update(toUpdate(request)));
  return encode(UpdateToolsetResponseSchema, create(UpdateToolsetResponseSchema, { toolset }));
});

const deleteToolset = method(rpc.deleteToolset, async (api, { namespace, handle, etag }) => {
  const deleted = await api.toolsets.remove({ namespace, handle, etag });
  return encode(DeleteToolsetResponseSchema, create(DeleteToolsetResponseSchema, { deleted }));
});

export const TOOLSETS: readonly UnaryMethod[] = [createToolset, getToolset, updateToolset, deleteToolset];
