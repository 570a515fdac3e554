/** `toolcrib/client`: the registry from a program's side. */
export type { RegistryAccess } from "./access.js";
export type { CallOptions } from "./connection.js";
export { RegistryConnection } from "./connection.js";
export type { CodeName, Reason, RegistryErrorFacts } from "./registry-error.js";
export { RegistryError } from "./registry-error.js";
export type { Target } from "./target.js";
export { DEFAULT_ADDRESS, TargetError, parseTarget } from "./target.js";
