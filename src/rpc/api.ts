import type { RegistryApi } from "../catalogue/api.js";
import type { ToolsetsApi } from "../catalogue/toolsets/api.js";
import type { GateApi } from "../gate/api.js";

/** The use-cases of all rooms, as the methods on every listener call them. */
export interface Api extends RegistryApi {
  readonly gate: GateApi;
  readonly toolsets: ToolsetsApi;
}
