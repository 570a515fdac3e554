/** Requests that read: protobuf → the queries of the use-cases. */
import type { SchemaKey, SchemaView, StubsQuery, WatchInput } from "../../catalogue/api.js";
import { Fault } from "../../domain/fault.js";
import { LIMITS } from "../../domain/limits.js";
import {
  type BatchGetFullSchemasRequest,
  type GetFullSchemaRequest,
  type GetServerRequest,
  type GetStubsRequest,
  type ListServersRequest,
  StubView,
  type WatchRequest,
  SchemaView as WireSchemaView,
} from "../../gen/toolcrib/v1/registry_service_pb.js";
import { Checks } from "./checks.js";
import { toFilter } from "./filter.js";

export function toStubsQuery(request: GetStubsRequest): StubsQuery {
  const checks = new Checks();
  const filter = toFilter(request.namespace, request.filter, checks);
  if (request.view !== StubView.UNSPECIFIED && request.view !== StubView.FULL) {
    checks.add("view", `${String(request.view)} is not a value of StubView`);
  }
  if (request.pageToken !== "" && request.ifRevision !== "") {
    checks.add("if_revision", "excludes page_token: it asks about a first page");
  }
  const query = {
    filter,
    pageSize: checks.pageSize(request.pageSize, LIMITS.pageStubs),
    pageToken: checks.token("page_token", request.pageToken),
    minRevision: checks.token("min_revision", request.minRevision),
    ifRevision: checks.token("if_revision", request.ifRevision),
  };
  checks.done();
  return query;
}

export interface SchemaQuery {
  readonly namespace: string;
  readonly key: SchemaKey;
  readonly view: SchemaView;
  readonly minRevision: string;
}

export function toSchemaQuery(request: GetFullSchemaRequest): SchemaQuery {
  const checks = new Checks();
  const namespace = checks.namespace(request.namespace);
  const key = toSchemaKey(request.key, checks);
  const view = toView(request.view);
  const minRevision = checks.token("min_revision", request.minRevision);
  checks.done();
  return { namespace, key, view, minRevision };
}

function toSchemaKey(key: GetFullSchemaRequest["key"], checks: Checks): SchemaKey {
  switch (key.case) {
    case "toolId":
      return { kind: "tool", toolId: checks.toolId("tool_id", key.value) };
    case "digest":
      return { kind: "digest", digest: checks.digest("digest", key.value) };
    default:
      checks.add("key", "one of tool_id or digest must be set");
      return { kind: "tool", toolId: "" };
  }
}

export interface SchemasQuery {
  readonly namespace: string;
  readonly toolIds: readonly string[];
  readonly view: SchemaView;
  readonly minRevision: string;
}

export function toSchemasQuery(request: BatchGetFullSchemasRequest): SchemasQuery {
  const checks = new Checks();
  const namespace = checks.namespace(request.namespace);
  if (request.toolIds.length === 0) checks.add("tool_ids", "at least one must be given");
  checks.count("tool_ids", request.toolIds.length, LIMITS.batchTools);
  for (const [i, id] of request.toolIds.slice(0, LIMITS.batchTools).entries()) checks.toolId(`tool_ids[${i}]`, id);
  const view = toView(request.view);
  const minRevision = checks.token("min_revision", request.minRevision);
  checks.done();
  return { namespace, toolIds: request.toolIds, view, minRevision };
}

function toView(view: WireSchemaView): SchemaView {
  switch (view) {
    case WireSchemaView.UNSPECIFIED:
    case WireSchemaView.FULL:
      return "full";
    case WireSchemaView.INPUT_ONLY:
      return "input-only";
    case WireSchemaView.COMPACT:
      return "compact";
    default:
      // A client newer than this replica: it may ask another one, or for less.
      throw new Fault(
        "VIEW_UNSUPPORTED",
        `view ${String(view)} is not known here: ask for FULL, INPUT_ONLY or COMPACT`,
      );
  }
}

export function toServersQuery(request: ListServersRequest): {
  namespace: string;
  pageSize: number;
  pageToken: string;
  minRevision: string;
} {
  const checks = new Checks();
  const query = {
    namespace: checks.namespace(request.namespace),
    pageSize: checks.pageSize(request.pageSize, LIMITS.pageServers),
    pageToken: checks.token("page_token", request.pageToken),
    minRevision: checks.token("min_revision", request.minRevision),
  };
  checks.done();
  return query;
}

export function toServerQuery(request: GetServerRequest): { namespace: string; serverId: string; minRevision: string } {
  const checks = new Checks();
  const query = {
    namespace: checks.namespace(request.namespace),
    serverId: checks.name("server_id", "server_id", request.serverId),
    minRevision: checks.token("min_revision", request.minRevision),
  };
  checks.done();
  return query;
}

export function toWatchInput(request: WatchRequest): WatchInput {
  const checks = new Checks();
  const input = {
    filter: toFilter(request.namespace, request.filter, checks),
    resumeToken: checks.token("resume_token", request.resumeToken),
    minRevision: checks.token("min_revision", request.minRevision),
  };
  checks.done();
  return input;
}
