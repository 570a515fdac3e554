/** Collects what is wrong with a request, so that the caller hears all of it at once. */
import { type Violation, invalidRequest } from "../../domain/fault.js";
import { DEFAULT_NAMESPACE, DIGEST_PATTERN, SLUG_PATTERN } from "../../domain/ids.js";
import { LIMITS } from "../../domain/limits.js";

export class Checks {
  readonly violations: Violation[] = [];

  add(field: string, description: string): void {
    this.violations.push({ field, description });
  }

  /** Throws INVALID_REQUEST if anything was added. */
  done(): void {
    if (this.violations.length > 0) throw invalidRequest(this.violations);
  }

  /** The namespace, `default` when empty. */
  namespace(value: string): string {
    if (value === "") return DEFAULT_NAMESPACE;
    if (!SLUG_PATTERN.test(value)) this.add("namespace", slugRule(value));
    return value;
  }

  slug(field: string, value: string): string {
    if (!SLUG_PATTERN.test(value)) this.add(field, slugRule(value));
    return value;
  }

  count(field: string, actual: number, limit: number): void {
    if (actual > limit) this.add(field, `at most ${limit} are taken, ${actual} were sent`);
  }

  length(field: string, value: string, limit: number): string {
    if (value.length > limit) this.add(field, `at most ${limit} characters are taken, ${value.length} were sent`);
    return value;
  }

  /** A revision, resume or page token: opaque here, but never long. */
  token(field: string, value: string): string {
    return this.length(field, value, LIMITS.tokenLength);
  }

  pageSize(value: number, limit: number): number {
    if (value < 0 || value > limit) this.add("page_size", `1 to ${limit}, or 0 for the default; ${value} was sent`);
    return value;
  }

  digest(field: string, value: string): string {
    if (!DIGEST_PATTERN.test(value))
      this.add(field, `sha256: and 64 lower-case hex digits are expected, not ${shown(value)}`);
    return value;
  }
}

/** A value from outside, short and in quotes, for an error message. */
export function shown(value: string): string {
  return JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}…` : value);
}

function slugRule(value: string): string {
  if (value === "") return "must be given";
  return `[a-z0-9] then [a-z0-9._-], at most ${LIMITS.slugLength} characters are expected, not ${shown(value)} (${value.length} characters)`;
}
