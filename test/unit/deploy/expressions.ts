/** What a PromQL expression refers to, as far as a check against our own metrics needs it; promtool checks its grammar. */
export interface Reference {
  readonly metric: string;
  /** Label matchers of its selector. */
  readonly matchers: readonly { readonly label: string; readonly values: readonly string[] }[];
}

const SELECTOR = /\b(toolcrib_\w+|up)\b(?:\{([^}]*)\})?/g;
const MATCHER = /(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"/g;

export function referencesOf(expression: string): Reference[] {
  const bare = expression.replace(/\b(?:by|on|without|ignoring)\s*\([^)]*\)/g, "");
  return [...bare.matchAll(SELECTOR)].map(([, metric = "", selector = ""]) => ({
    metric,
    matchers: [...selector.matchAll(MATCHER)].map(([, label = "", value = ""]) => ({
      label,
      values: value.split("|"),
    })),
  }));
}

/** Labels by which series are grouped or joined. */
export function groupingsOf(expression: string): string[] {
  return [...expression.matchAll(/\b(?:by|on|without|ignoring)\s*\(([^)]*)\)/g)].flatMap(([, list = ""]) =>
    list.split(",").map((label) => label.trim()),
  );
}
