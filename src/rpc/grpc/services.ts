/** The RPCs of RegistryService: each decodes, asks the use-case, and puts the answer together. */
import { type DescMessage, type MessageShape, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { RegistryApi } from "../../catalogue/api.js";
import { Fault } from "../../domain/fault.js";
import { formatRevision } from "../../domain/revision.js";
import * as wire from "../../gen/toolcrib/v1/registry_service_pb.js";
import { asBuffer, schemaAnswer, schemasAnswer, stubsAnswer } from "../answers.js";
import { toSchemaQuery, toSchemasQuery, toServerQuery, toServersQuery, toStubsQuery } from "../translate/reads.js";
import {
  fromDeregisterOutput,
  fromRegisterOutput,
  fromRenewals,
  toRegisterInput,
  toRenewals,
  toTarget,
} from "../translate/register.js";
import { fromRecord, fromRecords } from "../translate/server.js";

export const SERVICE = wire.RegistryService.typeName;
export const WATCH = `/${SERVICE}/Watch`;

export interface UnaryContext {
  /** Time the caller still has, ms; undefined when it set no deadline. */
  readonly deadlineMs: number | undefined;
}

export interface Answer {
  readonly body: Buffer;
  /** Sent as the `toolcrib-stale` header. */
  readonly stale: boolean;
}

export interface UnaryMethod {
  /** What keeps or ends a lease is served to the last moment; a refused renewal could cost the lease. */
  readonly draining: "served" | "refused";
  handle(api: RegistryApi, request: Buffer, context: UnaryContext): Promise<Answer>;
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
  return { body: asBuffer(toBinary(schema, message)), stale };
}

export const UNARY: Readonly<Record<string, UnaryMethod>> = {
  Register: {
    draining: "refused",
    async handle(api, request) {
      const input = toRegisterInput(decode(wire.RegisterRequestSchema, request));
      return encode(wire.RegisterResponseSchema, fromRegisterOutput(await api.register(input)));
    },
  },

  Renew: {
    draining: "served",
    async handle(api, request) {
      const { namespace, leases } = toRenewals(decode(wire.RenewRequestSchema, request));
      return encode(wire.RenewResponseSchema, fromRenewals(await api.renew(namespace, leases)));
    },
  },

  Deregister: {
    draining: "served",
    async handle(api, request) {
      const { namespace, target } = toTarget(decode(wire.DeregisterRequestSchema, request));
      return encode(wire.DeregisterResponseSchema, fromDeregisterOutput(await api.deregister(namespace, target)));
    },
  },

  GetStubs: {
    draining: "refused",
    async handle(api, request) {
      const page = await api.stubs(toStubsQuery(decode(wire.GetStubsRequestSchema, request)));
      return { body: stubsAnswer(page), stale: page.stale };
    },
  },

  GetFullSchema: {
    draining: "refused",
    async handle(api, request, { deadlineMs }) {
      const query = toSchemaQuery(decode(wire.GetFullSchemaRequestSchema, request));
      const { schema, position, stale } = await api.schema({ ...query, deadlineMs });
      return { body: schemaAnswer(schema, query.view, position), stale };
    },
  },

  BatchGetFullSchemas: {
    draining: "refused",
    async handle(api, request, { deadlineMs }) {
      const query = toSchemasQuery(decode(wire.BatchGetFullSchemasRequestSchema, request));
      const { results, position, stale } = await api.schemas({ ...query, deadlineMs });
      return { body: schemasAnswer(query.toolIds, results, query.view, position), stale };
    },
  },

  ListServers: {
    draining: "refused",
    async handle(api, request) {
      const page = await api.servers(toServersQuery(decode(wire.ListServersRequestSchema, request)));
      const { nextPageToken, position, stale } = page;
      const servers = fromRecords(page.servers, position);
      const revision = formatRevision(position);
      const body = {
        $typeName: wire.ListServersResponseSchema.typeName,
        servers,
        nextPageToken,
        revision,
        stale,
      } as const;
      return encode(wire.ListServersResponseSchema, body, stale);
    },
  },

  GetServer: {
    draining: "refused",
    async handle(api, request) {
      const query = toServerQuery(decode(wire.GetServerRequestSchema, request));
      const { server, position, stale } = await api.server(query);
      const revision = formatRevision(position);
      const body = {
        $typeName: wire.GetServerResponseSchema.typeName,
        server: fromRecord(server, position),
        revision,
        stale,
      } as const;
      return encode(wire.GetServerResponseSchema, body, stale);
    },
  },
};
