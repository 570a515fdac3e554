/** What the gate is asked: protobuf → its queries. */
import { oneLineReasons } from "../../domain/admission/names.js";
import { Fault } from "../../domain/fault.js";
import { LIMITS } from "../../domain/limits.js";
import type { FindQuery, MapQuery, SchemaChoice } from "../../gate/api.js";
import { type FindToolsRequest, type GetModuleMapRequest, type RecentTool, SchemaInclusion } from "../../gen/toolcrib/v1/gate_service_pb.js";
import { Checks } from "./checks.js";
import { toFilter } from "./filter.js";

/** Throws INVALID_REQUEST with every violation. */
export function toFindQuery(request: FindToolsRequest): FindQuery {
  const checks = new Checks();
  const filter = toFilter(request.namespace, request.filter, checks, "read");
  if (filter.availability === "unavailable")
    checks.add("filter.availability", "is UNAVAILABLE, but unavailable tools are never offered; GetStubs lists them");
  const intent = checks.length("intent", request.intent, LIMITS.intentLength);
  if (intent.trim() === "") checks.add("intent", "is empty; say what the agent is trying to do");
  const query = {
    intent,
    history: each("history", request.history, LIMITS.historyTurns, checks, (field, turn) =>
      checks.length(field, turn, LIMITS.intentLength),
    ),
    recent: each("recent_tools", request.recentTools, LIMITS.intentFacts, checks, (field, recent) =>
      toRecent(field, recent, checks),
    ),
    state: facts("state", request.state, checks),
    scopes: facts("scopes", request.scopes, checks),
    filter,
    category: checks.length("filter.category", request.filter?.category ?? "", LIMITS.moduleLength),
    topK: within("top_k", request.topK, LIMITS.findTools, `0 for ${LIMITS.findToolsDefault}`, checks),
    tokenBudget: within("token_budget", request.tokenBudget, BUDGET_MOST, "0 for no bound", checks),
    schemas: toChoice(request.includeSchemas),
    named: each("named_tools", request.namedTools, LIMITS.findTools, checks, (field, id) => checks.toolId(field, id)),
    minRevision: checks.token("min_revision", request.minRevision),
  };
  checks.done();
  return query;
}

/** Throws INVALID_REQUEST with every violation. */
export function toMapQuery({ namespace, tokenBudget, module, minRevision }: GetModuleMapRequest): MapQuery {
  const checks = new Checks();
  if (tokenBudget !== 0 && (tokenBudget < LIMITS.mapTokensLeast || tokenBudget > LIMITS.mapTokens)) {
    const range = `${LIMITS.mapTokensLeast} to ${LIMITS.mapTokens}, or 0 for ${LIMITS.mapTokensDefault}`;
    checks.add("token_budget", `${range}; ${tokenBudget} was sent`);
  }
  const query = {
    namespace: checks.namespace(namespace),
    tokenBudget,
    module: checks.length("module", module, LIMITS.moduleLength),
    minRevision: checks.token("min_revision", minRevision),
  };
  checks.done();
  return query;
}

/** What an int32 takes. */
const BUDGET_MOST = 2_147_483_647;

function each<T, R>(field: string, values: readonly T[], limit: number, checks: Checks, read: (field: string, value: T) => R): R[] {
  checks.count(field, values.length, limit);
  return values.slice(0, limit).map((value, i) => read(`${field}[${i}]`, value));
}

function facts(field: string, values: readonly string[], checks: Checks): string[] {
  return each(field, values, LIMITS.intentFacts, checks, (path, value) => {
    for (const reason of oneLineReasons(value, LIMITS.factLength, "a fact")) checks.add(path, reason);
    return value;
  });
}

function toRecent(field: string, { toolId, success, turnsAgo }: RecentTool, checks: Checks): FindQuery["recent"][number] {
  return { toolId: checks.toolId(`${field}.tool_id`, toolId), success, turnsAgo };
}

function within(field: string, value: number, limit: number, zero: string, checks: Checks): number {
  if (value < 0 || value > limit) checks.add(field, `1 to ${limit}, or ${zero}; ${value} was sent`);
  return value;
}

function toChoice(inclusion: SchemaInclusion): SchemaChoice {
  switch (inclusion) {
    case SchemaInclusion.UNSPECIFIED:
    case SchemaInclusion.NONE:
      return "none";
    case SchemaInclusion.COMPACT:
      return "compact";
    case SchemaInclusion.INPUT_ONLY:
      return "input-only";
    case SchemaInclusion.FULL:
      return "full";
    case SchemaInclusion.AUTO:
      return "auto";
    default:
      // A client newer than this replica.
      throw new Fault(
        "VIEW_UNSUPPORTED",
        `include_schemas ${String(inclusion)} is not known here: ask for NONE, COMPACT, INPUT_ONLY, FULL or AUTO`,
      );
  }
}
