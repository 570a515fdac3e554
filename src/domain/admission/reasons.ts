import { visible } from "./text.js";

/** Where something stands inside a JSON value: a linked list, rendered only when there is something to say. */
export interface Path {
  readonly parent: Path | undefined;
  readonly segment: string;
}

export function at(parent: Path | undefined, segment: string | number): Path {
  return { parent, segment: String(segment) };
}

/** A JSON pointer fit for a message: `/inputSchema/properties/a~1b`. */
export function pointer(path: Path | undefined): string {
  const segments: string[] = [];
  for (let p = path; p; p = p.parent) segments.push(visible(p.segment.replaceAll("~", "~0").replaceAll("/", "~1"), 40));
  return segments.length === 0 ? "the tool" : `/${segments.reverse().join("/")}`;
}

/** Enough to repair a tool by; a hostile definition could give a hundred thousand. */
const MAX_REASONS = 20;

/** All reasons of one rejection, bounded: behind the first twenty they are only counted. */
export class ReasonList {
  private readonly kept: string[] = [];
  private total = 0;

  add(reason: string): void {
    if (++this.total <= MAX_REASONS) this.kept.push(reason);
  }

  addAt(path: Path | undefined, predicate: string): void {
    if (this.total < MAX_REASONS) this.add(`${pointer(path)} ${predicate}`);
    else this.total++;
  }

  get empty(): boolean {
    return this.total === 0;
  }

  done(): string[] {
    const more = this.total - this.kept.length;
    return more > 0 ? [...this.kept, `and ${more} more reasons of ${this.total}`] : [...this.kept];
  }
}
