/** The unary RPCs of RegistryService: each asks the use-case, and puts the answer together as bytes. */
import { formatRevision } from "../../domain/revision.js";
import {
  DeregisterResponseSchema,
  GetServerResponseSchema,
  LintToolsResponseSchema,
  ListServersResponseSchema,
  RegisterResponseSchema,
  RegistryService,
  RenewResponseSchema,
} from "../../gen/toolcrib/v1/registry_service_pb.js";
import { schemaAnswer, schemasAnswer, stubsAnswer } from "../answers.js";
import { fromLintOutput, toLintQuery } from "../translate/quality.js";
import { toSchemaQuery, toSchemasQuery, toServerQuery, toServersQuery, toStubsQuery } from "../translate/reads.js";
import {
  fromDeregisterOutput,
  fromRegisterOutput,
  fromRenewals,
  toRegisterInput,
  toRenewals,
  toTarget,
} from "../translate/register.js";
import { fromNotices, fromRecord, fromRecords } from "../translate/server.js";
import { type UnaryMethod, encode, method } from "./method.js";

const rpc = RegistryService.method;

const register = method(rpc.register, async (api, request) =>
  encode(RegisterResponseSchema, fromRegisterOutput(await api.register(toRegisterInput(request)))),
);

/** What keeps or ends a lease is served to the last moment; a refused renewal could cost the lease. */
const LEASES = { draining: "served" } as const;

const renew = method(
  rpc.renew,
  async (api, request) => {
    const { namespace, leases } = toRenewals(request);
    return encode(RenewResponseSchema, fromRenewals(await api.renew(namespace, leases)));
  },
  LEASES,
);

const deregister = method(
  rpc.deregister,
  async (api, request) => {
    const { namespace, target } = toTarget(request);
    return encode(DeregisterResponseSchema, fromDeregisterOutput(await api.deregister(namespace, target)));
  },
  LEASES,
);

const REPEATABLE = { repeatable: true } as const;

const getStubs = method(
  rpc.getStubs,
  async (api, request) => {
    const page = await api.stubs(toStubsQuery(request));
    return { parts: stubsAnswer(page), stale: page.stale, repeats: true };
  },
  REPEATABLE,
);

const getFullSchema = method(
  rpc.getFullSchema,
  async (api, request, { deadlineMs }) => {
    const query = toSchemaQuery(request);
    const { schema, position, stale } = await api.schema({ ...query, deadlineMs });
    // A definition just loaded is LIVE once, and a stale one may be loaded anew at any time.
    return { parts: schemaAnswer(schema, query.view, position), stale, repeats: schema.freshness === "cached" };
  },
  REPEATABLE,
);

const batchGetFullSchemas = method(rpc.batchGetFullSchemas, async (api, request, { deadlineMs }) => {
  const query = toSchemasQuery(request);
  const { results, position, stale } = await api.schemas({ ...query, deadlineMs });
  return { parts: [schemasAnswer(query.toolIds, results, query.view, position)], stale };
});

const listServers = method(rpc.listServers, async (api, request) => {
  const query = toServersQuery(request);
  const { servers, nextPageToken, position, stale } = await api.servers(query);
  const body = {
    $typeName: ListServersResponseSchema.typeName,
    servers: fromRecords(servers, position, api),
    nextPageToken,
    revision: formatRevision(position),
    stale,
    notices: fromNotices(api.notices(query.namespace)),
  } as const;
  return encode(ListServersResponseSchema, body, stale);
});

const getServer = method(rpc.getServer, async (api, request) => {
  const { server, position, stale } = await api.server(toServerQuery(request));
  const body = {
    $typeName: GetServerResponseSchema.typeName,
    server: fromRecord(server, position, api),
    revision: formatRevision(position),
    stale,
  } as const;
  return encode(GetServerResponseSchema, body, stale);
});

const lintTools = method(rpc.lintTools, async (api, request) => {
  const output = await api.lint(toLintQuery(request));
  return encode(LintToolsResponseSchema, fromLintOutput(output), output.stale);
});

export const REGISTRY: readonly UnaryMethod[] = [
  register,
  renew,
  deregister,
  getStubs,
  getFullSchema,
  batchGetFullSchemas,
  listServers,
  getServer,
  lintTools,
];
