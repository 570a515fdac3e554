/** Collects what is wrong with a request, so that the caller hears all of it at once. */
import { type NameKind, nameViolations } from "../../domain/admission/names.js";
import { quoted, textLength } from "../../domain/admission/text.js";
import { type Violation, invalidRequest } from "../../domain/fault.js";
import { DEFAULT_NAMESPACE, DIGEST_PATTERN, splitToolId } from "../../domain/ids.js";
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
    return value === "" ? DEFAULT_NAMESPACE : this.name("namespace", "namespace", value);
  }

  name(kind: NameKind, field: string, value: string): string {
    this.violations.push(...nameViolations(kind, field, value));
    return value;
  }

  /** Both parts judged, so that a tool_id that can name nothing is told apart from one that names nothing now. */
  toolId(field: string, value: string): string {
    const parts = splitToolId(value);
    if (parts) {
      this.name("server_id", field, parts.serverId);
      this.name("tool_name", field, parts.toolName);
    } else this.add(field, `server_id/tool_name is expected, not ${quoted(value, 80)}`);
    return value;
  }

  count(field: string, actual: number, limit: number): void {
    if (actual > limit) this.add(field, `at most ${limit} are taken, ${actual} were sent`);
  }

  length(field: string, value: string, limit: number): string {
    const length = textLength(value);
    if (length > limit) this.add(field, `at most ${limit} characters are taken, ${length} were sent`);
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
      this.add(field, `sha256: and 64 lower-case hex digits are expected, not ${quoted(value, 80)}`);
    return value;
  }
}
