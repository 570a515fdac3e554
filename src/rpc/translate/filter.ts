import { Fault } from "../../domain/fault.js";
import { type Filter, everything, sortedSet } from "../../domain/filter.js";
import { LIMITS } from "../../domain/limits.js";
import type { Availability } from "../../domain/server.js";
import { type StubFilter, Availability as WireAvailability } from "../../gen/toolcrib/v1/stub_pb.js";
import type { Checks } from "./checks.js";

/** The filter in a namespace; an absent one selects everything. Throws CATEGORY_UNSUPPORTED for a category, unless the caller reads it. */
export function toFilter(
  namespace: string,
  filter: StubFilter | undefined,
  checks: Checks,
  category: "refused" | "read" = "refused",
): Filter {
  const ns = checks.namespace(namespace);
  if (!filter) return everything(ns);
  if (filter.category !== "" && category === "refused") {
    throw new Fault(
      "CATEGORY_UNSUPPORTED",
      "filter.category is for FindTools alone: filter by tags or server_ids instead",
    );
  }
  return {
    namespace: ns,
    tagsAny: tags("filter.tags_any", filter.tagsAny, checks),
    tagsAll: tags("filter.tags_all", filter.tagsAll, checks),
    serverIds: serverIds(filter.serverIds, checks),
    namePrefix: checks.length("filter.name_prefix", filter.namePrefix, LIMITS.toolNameLength),
    availability: availability(filter.availability, checks),
  };
}

function tags(field: string, values: readonly string[], checks: Checks): string[] {
  checks.count(field, values.length, LIMITS.tags);
  for (const [i, tag] of values.slice(0, LIMITS.tags).entries()) checks.name("tag", `${field}[${i}]`, tag);
  return sortedSet(values);
}

function serverIds(values: readonly string[], checks: Checks): string[] {
  checks.count("filter.server_ids", values.length, LIMITS.filterServers);
  for (const [i, id] of values.slice(0, LIMITS.filterServers).entries())
    checks.name("server_id", `filter.server_ids[${i}]`, id);
  return sortedSet(values);
}

function availability(value: WireAvailability, checks: Checks): Availability | undefined {
  switch (value) {
    case WireAvailability.UNSPECIFIED:
      return undefined;
    case WireAvailability.AVAILABLE:
      return "available";
    case WireAvailability.UNAVAILABLE:
      return "unavailable";
    default:
      checks.add("filter.availability", `${String(value)} is not a value of Availability`);
      return undefined;
  }
}
