/** A breaker never sticks: a server that answers again is available within what its backoff allows. */
import { type History, only, type Violation } from "./history.js";

export function breaker(history: History): Violation[] {
  const texts = only(history, "answering").flatMap(({ namespace, serverId, from, to }) =>
    only(history, "servers").flatMap((read) => {
      const { outcome, replica, call, back } = read;
      const late = call.ms - from.ms;
      const during = back !== undefined && (to === undefined || back.n < to.n);
      if (read.namespace !== namespace || late < history.facts.recoverMs || !during || outcome.kind !== "ok") return [];
      const seen = outcome.value.servers.find((s) => s.serverId === serverId);
      if (!seen || seen.available || seen.breaker === "isolated") return [];
      return [`${namespace}:${serverId} has answered for ${Math.round(late)} ms, and replica ${replica} still calls it unavailable (breaker ${seen.breaker})`];
    }),
  );
  return texts.map((text) => ({ promise: "breaker", text: `breaker: ${text}` }));
}
