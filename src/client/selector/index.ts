/** `Selector`: tools chosen by a model call of its own. */
export { ModelError, type ModelFailure, type ModelOptions } from "./model.js";
export type { Effort, Fallback, FallbackWhy, Selection } from "./selection.js";
export { Selector, type SelectOptions, type SelectorOptions } from "./selector.js";
export type { SelectorRegistry } from "./shelves.js";
