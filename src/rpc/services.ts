/**
 * The RPCs of RegistryService, for every listener: each reads a decoded request, asks the use-case, and puts the answer
 * together as bytes.
 */
import { type DescMessage, type Message, type MessageShape, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { RegistryApi } from "../catalogue/api.js";
import { Fault } from "../domain/fault.js";
import { formatRevision } from "../domain/revision.js";
import * as wire from "../gen/toolcrib/v1/registry_service_pb.js";
import { schemaAnswer, schemasAnswer, stubsAnswer } from "./answers.js";
import { toSchemaQuery, toSchemasQuery, toServerQuery, toServersQuery, toStubsQuery } from "./translate/reads.js";
import {
  fromDeregisterOutput,
  fromRegisterOutput,
  fromRenewals,
  toRegisterInput,
  toRenewals,
  toTarget,
} from "./translate/register.js";
import { fromNotices, fromRecord, fromRecords } from "./translate/server.js";

export const SERVICE = wire.RegistryService.typeName;
export const WATCH = `/${SERVICE}/Watch`;

export interface UnaryContext {
  /** Time the caller still has, ms; undefined when it set no deadline. */
  readonly deadlineMs: number | undefined;
}

export interface Answer {
  /** An encoded message, in parts: stored bytes are copied once, by whoever sends them. Never to be written to. */
  readonly parts: readonly Uint8Array[];
  /** Sent as the `toolcrib-stale` header. */
  readonly stale: boolean;
  /** The same request of the same caller is answered alike as long as `RegistryApi.version` stands. */
  readonly repeats?: boolean;
}

/** Length of an answer in bytes. */
export function sizeOf({ parts }: Answer): number {
  let size = 0;
  for (const part of parts) size += part.byteLength;
  return size;
}

export interface UnaryMethod {
  /** What keeps or ends a lease is served to the last moment; a refused renewal could cost the lease. */
  readonly draining: "served" | "refused";
  /** Reads whose answers may be marked `repeats`. */
  readonly repeatable: boolean;
  readonly input: DescMessage;
  readonly output: DescMessage;
  /** Takes a message of `input`; the answer's body is an encoded `output`. */
  handle(api: RegistryApi, request: Message, context: UnaryContext): Promise<Answer>;
}

/** Throws MALFORMED_MESSAGE when the bytes are not a message of this type, or hold text that is not UTF-8. */
export function decode<S extends DescMessage>(schema: S, bytes: Uint8Array): MessageShape<S> {
  try {
    return fromBinary(schema, bytes);
  } catch (cause) {
    const message = `the request is not an encoded ${schema.typeName}, or holds text that is not UTF-8`;
    throw new Fault("MALFORMED_MESSAGE", message, { cause });
  }
}

function encode<S extends DescMessage>(schema: S, message: MessageShape<S>, stale = false): Answer {
  return { parts: [toBinary(schema, message)], stale };
}

function method<I extends DescMessage>(
  input: I,
  output: DescMessage,
  draining: UnaryMethod["draining"],
  handle: (api: RegistryApi, request: MessageShape<I>, context: UnaryContext) => Promise<Answer>,
): UnaryMethod {
  const repeatable = output === wire.GetStubsResponseSchema || output === wire.GetFullSchemaResponseSchema;
  return { input, output, draining, repeatable, handle: handle as UnaryMethod["handle"] };
}

const Register = method(wire.RegisterRequestSchema, wire.RegisterResponseSchema, "refused", async (api, request) =>
  encode(wire.RegisterResponseSchema, fromRegisterOutput(await api.register(toRegisterInput(request)))),
);

const Renew = method(wire.RenewRequestSchema, wire.RenewResponseSchema, "served", async (api, request) => {
  const { namespace, leases } = toRenewals(request);
  return encode(wire.RenewResponseSchema, fromRenewals(await api.renew(namespace, leases)));
});

const Deregister = method(
  wire.DeregisterRequestSchema,
  wire.DeregisterResponseSchema,
  "served",
  async (api, request) => {
    const { namespace, target } = toTarget(request);
    return encode(wire.DeregisterResponseSchema, fromDeregisterOutput(await api.deregister(namespace, target)));
  },
);

const GetStubs = method(wire.GetStubsRequestSchema, wire.GetStubsResponseSchema, "refused", async (api, request) => {
  const page = await api.stubs(toStubsQuery(request));
  return { parts: stubsAnswer(page), stale: page.stale, repeats: true };
});

const GetFullSchema = method(
  wire.GetFullSchemaRequestSchema,
  wire.GetFullSchemaResponseSchema,
  "refused",
  async (api, request, { deadlineMs }) => {
    const query = toSchemaQuery(request);
    const { schema, position, stale } = await api.schema({ ...query, deadlineMs });
    // A definition just loaded is LIVE once, and a stale one may be loaded anew at any time.
    return { parts: schemaAnswer(schema, query.view, position), stale, repeats: schema.freshness === "cached" };
  },
);

const BatchGetFullSchemas = method(
  wire.BatchGetFullSchemasRequestSchema,
  wire.BatchGetFullSchemasResponseSchema,
  "refused",
  async (api, request, { deadlineMs }) => {
    const query = toSchemasQuery(request);
    const { results, position, stale } = await api.schemas({ ...query, deadlineMs });
    return { parts: [schemasAnswer(query.toolIds, results, query.view, position)], stale };
  },
);

const ListServers = method(
  wire.ListServersRequestSchema,
  wire.ListServersResponseSchema,
  "refused",
  async (api, request) => {
    const query = toServersQuery(request);
    const { servers, nextPageToken, position, stale } = await api.servers(query);
    const body = {
      $typeName: wire.ListServersResponseSchema.typeName,
      servers: fromRecords(servers, position, api),
      nextPageToken,
      revision: formatRevision(position),
      stale,
      notices: fromNotices(api.notices(query.namespace)),
    } as const;
    return encode(wire.ListServersResponseSchema, body, stale);
  },
);

const GetServer = method(wire.GetServerRequestSchema, wire.GetServerResponseSchema, "refused", async (api, request) => {
  const { server, position, stale } = await api.server(toServerQuery(request));
  const body = {
    $typeName: wire.GetServerResponseSchema.typeName,
    server: fromRecord(server, position, api),
    revision: formatRevision(position),
    stale,
  } as const;
  return encode(wire.GetServerResponseSchema, body, stale);
});

export const UNARY: Readonly<Record<string, UnaryMethod>> = {
  Register,
  Renew,
  Deregister,
  GetStubs,
  GetFullSchema,
  BatchGetFullSchemas,
  ListServers,
  GetServer,
};
