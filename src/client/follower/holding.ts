import { LocalCatalogue } from "./catalogue.js";
import type { Heard } from "./reader.js";
import type { CatalogueChange, RelistCause } from "./state.js";

/** What a follower holds, and from where it goes on. Only whole lists and whole changes come in, each at once. */
export class Holding {
  catalogue: LocalCatalogue | undefined;
  revision = "";
  /** Empty: the next stream begins with a list. */
  token = "";
  #minRevision = "";

  /** What to ask the next stream for. */
  get place(): { readonly resumeToken: string; readonly minRevision: string } {
    return { resumeToken: this.token, minRevision: this.#minRevision };
  }

  /** Another list takes the place of what is held; answers how it differs. */
  list({ stubs, token, revision }: Extract<Heard, { kind: "snapshot" }>): CatalogueChange {
    const source = this.catalogue ? "relist" : "snapshot";
    const next = LocalCatalogue.of(stubs);
    const events = next.differencesFrom(this.catalogue ?? new LocalCatalogue());
    this.catalogue = next;
    this.#moveTo(token, revision);
    return { source, revision, events };
  }

  change({ events, token, revision, committedAt }: Extract<Heard, { kind: "change" }>): CatalogueChange {
    this.catalogue?.apply(events);
    this.#moveTo(token, revision);
    return { source: "registry", revision, events, ...(committedAt && { committedAt }) };
  }

  bookmark({ token, revision }: Extract<Heard, { kind: "bookmark" }>): void {
    this.#moveTo(token, revision);
  }

  /** The history cannot be continued from here. What is held stays until another list is whole. */
  relist(cause: RelistCause): void {
    this.token = "";
    // A compacted history is the same one: a replica that lags must not take the catalogue back in time.
    this.#minRevision = cause === "compacted" ? this.revision : "";
  }

  #moveTo(token: string, revision: string): void {
    this.token = token;
    this.revision = revision;
    this.#minRevision = "";
  }
}
