/** The registry's tools as the gateway holds them: followed, and readable while the registry is away. */
import { Availability, type CatalogueChange, type Follower } from "../client/index.js";
import type { KnownTool } from "./words.js";

/** What is the matter with a tool: it can be called, its server is away, or the registry has no such tool. */
export type Standing = "here" | "away" | "gone";

export class Catalogue {
  readonly #follower: Follower;
  readonly #listeners = new Set<(change: CatalogueChange) => void>();

  constructor(follower: Follower) {
    this.#follower = follower;
    follower.on("change", (change) => {
      for (const listener of [...this.#listeners]) listener(change);
    });
  }

  /** Whether there is a catalogue at all; until then nothing can be said of any tool. */
  get known(): boolean {
    return this.#follower.stubs().length > 0 || ["live", "stale"].includes(this.#follower.state.kind);
  }

  /** Resolves when there is a catalogue, when the registry turns out to be away, and in the end after `ms`. */
  async arrived(ms: number): Promise<void> {
    if (!this.#coming) return;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        forget();
        resolve();
      };
      const timer = setTimeout(done, ms);
      const forget = this.#follower.on("state", () => {
        if (!this.#coming) done();
      });
    });
  }

  /** Empty while the catalogue is what the registry has; else a sentence. */
  get stale(): string {
    const { kind } = this.#follower.state;
    if (kind === "live") return "";
    if (kind === "refused") return "The registry refuses this gateway, so its list of tools may be out of date.";
    return this.known ? "The registry is away, so this may be out of date (stale)." : "The registry is away, and its tools are not known yet.";
  }

  /** The first list is on its way, as far as anybody knows. */
  get #coming(): boolean {
    const { state } = this.#follower;
    return !this.known && (state.kind === "snapshot" || (state.kind === "connecting" && !state.error));
  }

  tool(toolId: string): KnownTool | undefined {
    return this.#follower.stub(toolId);
  }

  tools(): readonly KnownTool[] {
    return this.#follower.stubs();
  }

  standing(toolId: string): Standing {
    const tool = this.tool(toolId);
    if (!tool) return "gone";
    return tool.availability === Availability.UNAVAILABLE ? "away" : "here";
  }

  /** Of every change, after the catalogue has it. Returns how to take the listener back. */
  onChange(listener: (change: CatalogueChange) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}
