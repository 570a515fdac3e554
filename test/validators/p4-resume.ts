/** P4: a resumed watch goes on exactly after its token, or is refused with a cause; never something in between. */
import { parseResumeToken, parseRevision } from "../../src/domain/revision.js";
import { type History, only, type Violation } from "./history.js";
import { knownRevisions, owed } from "./known.js";
import { keyOf, lineageOf } from "./lineage.js";
import { nameOf, shown, streamsOf, type Stream } from "./streams.js";

const CAUSES = ["compacted", "chain", "ahead"];

export function resume(history: History): Violation[] {
  const given = tokensGiven(history);
  const texts = streamsOf(history).flatMap((stream) =>
    [...untrueTokens(stream), ...(stream.watch.resumeToken === "" ? [] : resumed(history, stream, given))].map(
      (text) => `${nameOf(stream)} ${text}`,
    ),
  );
  return texts.map((text) => ({ promise: "P4", text: `P4 resume: ${text}` }));
}

/** Tokens with the filters that they were given for. */
function tokensGiven(history: History): Set<string> {
  return new Set(streamsOf(history).flatMap((s) => s.steps.map((step) => `${s.hash} ${step.token}`)));
}

/** Each token stands for the place where it was given. */
function untrueTokens(stream: Stream): string[] {
  return stream.steps.flatMap(({ kind, token, position }) => {
    const place = token === "" ? undefined : parseResumeToken(token)?.position;
    if (token === "" ? kind === "snapshot" : place && keyOf(place) === keyOf(position)) return [];
    const says = place ? `a token for ${shown(place)}` : "no token that can be used";
    return [`got with the ${kind} at ${shown(position)} ${says}`];
  });
}

function resumed(history: History, stream: Stream, given: ReadonlySet<string>): string[] {
  const out = refusal(history, stream, given);
  const list = stream.steps.find((s) => s.kind === "snapshot");
  if (list) out.push(`was given a list at ${shown(list.position)} instead of what came after its token`);
  const first = stream.steps[0]?.position;
  if (!stream.resumed || !first || list) return out;
  const lineage = lineageOf(history);
  for (const revision of knownRevisions(history)) {
    const { namespace, position } = revision;
    if (namespace !== stream.watch.namespace || position.revision >= first.revision) continue;
    if (position.revision <= stream.resumed.revision || !lineage.before(position, first)) continue;
    const [debt] = owed(revision, stream);
    if (!debt) continue;
    out.push(
      `went on at ${shown(first)} after its token for ${shown(stream.resumed)}, and revision ${shown(position)} concerned it: ${debt[0]}`,
    );
  }
  return out;
}

function refusal(history: History, stream: Stream, given: ReadonlySet<string>): string[] {
  const { ended, steps } = stream;
  if (!ended || steps.length > 0) return [];
  const own = given.has(`${stream.hash} ${stream.watch.resumeToken}`);
  if (ended.reason === "INVALID_TOKEN" && own) return ["was told that its token is none, though it was given for this filter"];
  if (ended.reason !== "RELIST_REQUIRED") return [];
  if (!CAUSES.includes(ended.cause)) return [`has to begin again without a cause (${JSON.stringify(ended.cause)})`];
  if (!history.facts.oneHistory || !own || !stream.resumed) return [];
  if (ended.cause === "chain") return ["was refused for its chain, though no commit was ever lost"];
  // Half the window is far from its end, so what nobody saw cannot have filled it.
  const passed = newest(history) - stream.resumed.revision;
  if (ended.cause === "compacted" && passed < history.facts.window / 2) {
    return [`was refused as compacted, though only ${passed} revisions passed and ${history.facts.window} are kept`];
  }
  return [];
}

function newest(history: History): number {
  const said = only(history, "message").flatMap(({ message }) => parseRevision(message.revision)?.revision ?? 0);
  const read = only(history, "stubs").flatMap(({ outcome }) => (outcome.kind === "ok" ? (parseRevision(outcome.value.revision)?.revision ?? 0) : 0));
  return [...said, ...read].reduce((a, b) => Math.max(a, b), 0);
}
