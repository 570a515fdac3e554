/** P3: after bookmark R nothing at or before R arrives. */
import type { History, Violation } from "./history.js";
import { nameOf, shown, streamsOf, type Stream } from "./streams.js";

export function bookmark(history: History): Violation[] {
  const texts = streamsOf(history).flatMap((stream) => late(stream).map((text) => `${nameOf(stream)} ${text}`));
  return texts.map((text) => ({ promise: "P3", text: `P3 bookmark: ${text}` }));
}

function late(stream: Stream): string[] {
  const out: string[] = [];
  let mark: (typeof stream.steps)[number] | undefined;
  for (const step of stream.steps) {
    if (mark && step.kind === "bookmark" && step.position.revision < mark.position.revision) {
      out.push(`got bookmark ${shown(step.position)} after bookmark ${shown(mark.position)}`);
    } else if (mark && step.kind !== "bookmark" && step.position.revision <= mark.position.revision) {
      out.push(`got the ${step.kind} at ${shown(step.position)} after bookmark ${shown(mark.position)}`);
    }
    if (step.kind === "bookmark") mark = step;
  }
  return out;
}
