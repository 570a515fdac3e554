/** What a failed call to the registry means for somebody who asked the gateway. */
import { RegistryError } from "../client/index.js";

/** The registry, or its store, cannot be asked now; it may be in a moment. */
export function isAway(error: unknown): boolean {
  return error instanceof RegistryError && (error.code === "UNAVAILABLE" || error.code === "DEADLINE_EXCEEDED");
}

/** The registry does not know the caller, or wants a token of it. */
export function isUnknownCaller(error: unknown): boolean {
  return error instanceof RegistryError && error.code === "UNAUTHENTICATED";
}

/** The registry knows the caller, and does not let it do this. */
export function isForbidden(error: unknown): boolean {
  return error instanceof RegistryError && error.code === "PERMISSION_DENIED";
}

/** For a model or a person: what is the matter, and what to do. */
export function explainRegistry(error: unknown): string {
  if (!(error instanceof RegistryError)) return `The gateway failed: ${error instanceof Error ? error.message : String(error)}`;
  if (isAway(error)) {
    return `The tool registry cannot be asked now (${error.message}). Tools that are loaded go on working; look for others in a moment.`;
  }
  if (isUnknownCaller(error)) return "The tool registry does not know this caller: send a valid bearer token in the Authorization header.";
  if (error.violations.length > 0) return `The tool registry refused this: ${error.violations.map((v) => `${v.field}: ${v.description}`).join("; ")}.`;
  return `The tool registry refused this: ${error.message}.`;
}
