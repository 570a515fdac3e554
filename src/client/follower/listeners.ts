import type { FollowerEvents } from "./state.js";

type Name = keyof FollowerEvents;
type Listener<N extends Name> = (event: FollowerEvents[N]) => void;

/** Who wants to hear of what. */
export class Listeners {
  readonly #by: { readonly [N in Name]: Set<Listener<N>> } = { change: new Set(), state: new Set(), relist: new Set() };

  /** Returns how to take it back. */
  add<N extends Name>(name: N, listener: Listener<N>): () => void {
    const set: Set<Listener<N>> = this.#by[name];
    set.add(listener);
    return () => void set.delete(listener);
  }

  /** A listener's mistake must neither stop the others nor be taken for the registry's. */
  tell<N extends Name>(name: N, event: FollowerEvents[N]): void {
    for (const listener of [...this.#by[name]] as Listener<N>[]) {
      try {
        listener(event);
      } catch (error) {
        process.emitWarning(`a follower's "${name}" listener threw: ${String(error)}`, { type: "ToolcribWarning" });
      }
    }
  }
}
