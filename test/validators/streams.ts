/** Watches put together from a history's messages: whole changes, in order, each at its place. */
import { filterHash } from "../../src/domain/filter.js";
import { parseResumeToken, parseRevision, type Position } from "../../src/domain/revision.js";
import { type History, type Moment, only, type SeenEvent, type SeenStub, type WatchEnded, type WatchMessage, type WatchOpened } from "./history.js";

export interface Step {
  readonly kind: "snapshot" | "change" | "bookmark";
  /** When its last message came. */
  readonly at: Moment;
  readonly position: Position;
  readonly revision: string;
  /** Empty in a list that cannot be resumed. */
  readonly token: string;
  readonly events: readonly SeenEvent[];
  /** Of a snapshot. */
  readonly stubs: readonly SeenStub[];
}

/** Something that no reader can make sense of: a change without its end, a revision that is none. */
export interface Oddity {
  readonly at: Moment;
  readonly text: string;
}

export interface Stream {
  readonly watch: WatchOpened;
  /** Under which watchers with the same filter and namespace are found. */
  readonly hash: string;
  /** Of its resume token; undefined when it began with a list. */
  readonly resumed: Position | undefined;
  readonly steps: readonly Step[];
  readonly odd: readonly Oddity[];
  readonly ended: WatchEnded | undefined;
}

/** `watcher w3 on replica a`, with what it asked for. */
export function nameOf({ watch }: Stream): string {
  const { tagsAny, tagsAll, serverIds, namePrefix, availability } = watch.filter;
  const parts = [...tagsAny, ...tagsAll, ...serverIds, namePrefix, availability ?? ""].filter((p) => p !== "");
  const filter = parts.length > 0 ? ` (${parts.join(" ")})` : "";
  const resumed = watch.resumeToken === "" ? "" : ", resumed";
  return `watcher ${watch.watcher}${filter} on replica ${watch.replica}${resumed}`;
}

const cache = new WeakMap<History, readonly Stream[]>();

export function streamsOf(history: History): readonly Stream[] {
  const known = cache.get(history);
  if (known) return known;
  const messages = new Map<string, ReturnType<typeof only<"message">>>();
  for (const m of only(history, "message")) {
    const list = messages.get(m.watcher);
    if (list) list.push(m);
    else messages.set(m.watcher, [m]);
  }
  const ended = new Map(only(history, "ended").map((e) => [e.watcher, e]));
  const streams = only(history, "watch").map((watch): Stream => {
    const said = (messages.get(watch.watcher) ?? []).sort((a, b) => a.at.n - b.at.n);
    return {
      watch,
      hash: filterHash(watch.filter),
      resumed: parseResumeToken(watch.resumeToken)?.position,
      ...assemble(said),
      ended: ended.get(watch.watcher),
    };
  });
  cache.set(history, streams);
  return streams;
}

type Said = ReturnType<typeof only<"message">>[number];

function assemble(said: readonly Said[]): Pick<Stream, "steps" | "odd"> {
  const steps: Step[] = [];
  const odd: Oddity[] = [];
  let stubs: SeenStub[] = [];
  let open: { revision: string; events: SeenEvent[] } | undefined;
  const step = (kind: Step["kind"], at: Moment, { revision, token }: WatchMessage, more: Partial<Step>): void => {
    const position = parseRevision(revision);
    if (position) steps.push({ kind, at, position, revision, token, events: [], stubs: [], ...more });
    else odd.push({ at, text: `a ${kind} names ${JSON.stringify(revision)}, which is no revision` });
  };
  for (const { at, message: m } of said) {
    if (open && (m.kind !== "change" || m.revision !== open.revision)) {
      odd.push({ at, text: `the change at ${shown(open.revision)} has no last part: a ${m.kind} came instead` });
      open = undefined;
    }
    if (m.kind === "snapshot") {
      stubs.push(...m.stubs);
      if (!m.last) continue;
      step("snapshot", at, m, { stubs });
      stubs = [];
    } else if (m.kind === "bookmark") step("bookmark", at, m, {});
    else if (m.token === "") open = { revision: m.revision, events: [...(open?.events ?? []), ...m.events] };
    else {
      step("change", at, m, { events: [...(open?.events ?? []), ...m.events] });
      open = undefined;
    }
  }
  return { steps, odd };
}

/** `17 (chain 3f…)`: what people compare. */
export function shown(revision: string | Position): string {
  const position = typeof revision === "string" ? parseRevision(revision) : revision;
  return position ? `${position.revision} (chain ${position.chain.slice(0, 6)})` : JSON.stringify(revision);
}

/** The first place that a stream stands for: everything before it is in its snapshot, or was told to whoever gave the token. */
export function startOf(stream: Stream): Position | undefined {
  return stream.resumed ?? stream.steps.find((s) => s.kind === "snapshot")?.position;
}
