import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { Change, Event, SnapshotChunk, WatchResponse } from "../../gen/toolcrib/v1/registry_service_pb.js";
import type { Stub } from "../../gen/toolcrib/v1/stub_pb.js";
import { RegistryError } from "../registry-error.js";

/** What a message completes. */
export type Heard =
  /** More parts follow. */
  | { readonly kind: "snapshot-part" | "change-part" }
  /** An empty token: served by a replica whose store lost its history, and nothing can be continued from here. */
  | { readonly kind: "snapshot"; readonly stubs: readonly Stub[]; readonly token: string; readonly revision: string }
  | {
      readonly kind: "change";
      readonly events: readonly Event[];
      readonly token: string;
      readonly revision: string;
      readonly committedAt: Date | undefined;
    }
  | { readonly kind: "bookmark"; readonly token: string; readonly revision: string }
  /** A kind of message that a newer registry sends. */
  | { readonly kind: "unknown" };

/** Puts the messages of one stream together: a list or a change counts once all of its parts are here. One per stream. */
export class MessageReader {
  #stubs: Stub[] | undefined;
  #parts: Change[] = [];
  #listed: boolean;

  /** `resumed`: the stream was asked for with a token, and so needs no list before its changes. */
  constructor(resumed: boolean) {
    this.#listed = resumed;
  }

  /** Throws RegistryError when the messages contradict each other: then nothing that follows can be trusted. */
  read({ message }: WatchResponse): Heard {
    switch (message.case) {
      case "snapshot":
        if (this.#parts.length > 0) throw contradiction("a list began within a change");
        return this.#snapshot(message.value);
      case "change":
        if (this.#stubs || !this.#listed) throw contradiction("a change came before the list was whole");
        return this.#change(message.value);
      case "bookmark": {
        if (this.#stubs || this.#parts.length > 0 || !this.#listed)
          throw contradiction("a bookmark came before what it covers");
        const { resumeToken: token, revision } = message.value;
        return { kind: "bookmark", token, revision };
      }
      default:
        return { kind: "unknown" };
    }
  }

  #snapshot({ stubs, last, resumeToken: token, revision }: SnapshotChunk): Heard {
    const all = (this.#stubs ??= []);
    for (const stub of stubs) all.push(stub);
    if (!last) return { kind: "snapshot-part" };
    this.#stubs = undefined;
    this.#listed = true;
    return { kind: "snapshot", stubs: all, token, revision };
  }

  #change(part: Change): Heard {
    const { resumeToken: token, revision, committedAt } = part;
    if (this.#parts.some((before) => before.revision !== revision))
      throw contradiction("a change ended in another one");
    this.#parts.push(part);
    if (token === "") return { kind: "change-part" };
    const events = this.#parts.flatMap((p) => p.events);
    this.#parts = [];
    return { kind: "change", events, token, revision, committedAt: committedAt && timestampDate(committedAt) };
  }
}

function contradiction(what: string): RegistryError {
  return new RegistryError(`the registry contradicts itself: ${what}`, { code: "INTERNAL" });
}
