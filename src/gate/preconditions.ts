import type { Precondition } from "../domain/stub.js";
import type { FindQuery } from "./api.js";

/** What an agent has, ready to be asked. */
export class Granted {
  private readonly scopes: ReadonlySet<string>;
  private readonly facts: ReadonlySet<string>;
  private readonly succeeded: ReadonlySet<string>;

  constructor({ scopes, state, recent }: Pick<FindQuery, "scopes" | "state" | "recent">) {
    this.scopes = new Set(scopes);
    // A fact with a value is also the fact that there is such a value.
    this.facts = new Set(state.flatMap((fact) => [fact, nameOf(fact)]));
    this.succeeded = new Set(recent.filter(({ success }) => success).map(({ toolId }) => toolId));
  }

  state(fact: string): boolean {
    return this.facts.has(fact);
  }

  /** The preconditions of a tool of this server that do not hold. */
  missing(requires: readonly Precondition[], serverId: string): readonly Precondition[] {
    return requires.filter((required) => !this.holds(required, serverId));
  }

  private holds({ kind, value }: Precondition, serverId: string): boolean {
    switch (kind) {
      case "scope":
        return this.scopes.has(value);
      case "state":
        return this.state(value);
      case "tool":
        return this.succeeded.has(value.includes("/") ? value : `${serverId}/${value}`);
    }
  }
}

function nameOf(fact: string): string {
  const equals = fact.indexOf("=");
  return equals < 0 ? fact : fact.slice(0, equals);
}

/** A sentence that names everything that is missing. */
export function missingWords(missing: readonly Precondition[]): string {
  const of = (kind: Precondition["kind"]) => missing.filter((m) => m.kind === kind).map((m) => m.value);
  const parts = [
    listed(of("scope"), "the scope", "the scopes"),
    listed(of("state"), "the state", "the states"),
    listed(of("tool"), "a success of", "a success of each of"),
  ];
  return `it needs ${parts.filter((part) => part !== "").join(" and ")}`;
}

function listed(values: readonly string[], one: string, many: string): string {
  if (values.length === 0) return "";
  return `${values.length === 1 ? one : many} ${values.join(", ")}`;
}
