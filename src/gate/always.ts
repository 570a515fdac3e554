import { everything } from "../domain/filter.js";
import type { StubFields } from "../domain/stub.js";
import type { FindQuery } from "./api.js";
import { intentOf } from "./intent.js";
import { Offers } from "./offers.js";
import type { Cut, ListedTool } from "./ports.js";
import type { Rules } from "./stages.js";

/** Tools that rules include whatever is asked, of what somebody without scopes and facts may be offered. */
export function alwaysIncluded(namespace: string, rules: Rules, cut: Cut, labelOf: (listed: ListedTool) => StubFields): readonly string[] {
  const query: FindQuery = {
    intent: "",
    history: [],
    recent: [],
    state: [],
    scopes: [],
    filter: everything(namespace),
    category: "",
    topK: 0,
    tokenBudget: 0,
    schemas: "none",
    minRevision: "",
  };
  const ruling = rules.judge(query, intentOf({ text: "" }));
  if (ruling.always.length === 0) return [];
  const offers = new Offers(query, { cut, ruling, category: undefined, labelOf });
  return ruling.always.map(({ toolId }) => toolId).filter((id) => offers.mayOffer(id));
}
