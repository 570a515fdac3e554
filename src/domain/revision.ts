/** Places in a log, and the opaque strings that stand for them on the wire. */

/** A place in a partition's history. An empty log is at revision 0 with chain `0`. */
export interface Position {
  readonly partition: number;
  /** Counts from 1. */
  readonly revision: number;
  /** 16 hex digits that link this entry to all before it. */
  readonly chain: string;
}

export const EMPTY_CHAIN = "0";

export function startOf(partition: number): Position {
  return { partition, revision: 0, chain: EMPTY_CHAIN };
}

export function samePosition(a: Position, b: Position): boolean {
  return a.partition === b.partition && a.revision === b.revision && a.chain === b.chain;
}

const REVISION = /^v1\.(\d{1,5})\.(\d{1,16})\.([0-9a-f]{1,16})$/;
const RESUME = /^w1\.(\d{1,5})\.(\d{1,16})\.([0-9a-f]{1,16})\.([0-9a-f]{16})$/;

/** Wire form of a revision: opaque to clients. */
export function formatRevision(p: Position): string {
  return Buffer.from(`v1.${p.partition}.${p.revision}.${p.chain}`).toString("base64url");
}

/** Undefined if the text is not one that formatRevision made. */
export function parseRevision(text: string): Position | undefined {
  return positionFrom(REVISION.exec(decode(text)));
}

/** Wire form of a resume token: a position bound to a filter (and so to its namespace). */
export function formatResumeToken(p: Position, filterHash: string): string {
  return Buffer.from(`w1.${p.partition}.${p.revision}.${p.chain}.${filterHash}`).toString("base64url");
}

export function parseResumeToken(text: string): { position: Position; filterHash: string } | undefined {
  const match = RESUME.exec(decode(text));
  const position = positionFrom(match);
  return position && match?.[4] ? { position, filterHash: match[4] } : undefined;
}

function positionFrom(match: RegExpExecArray | null): Position | undefined {
  if (!match?.[1] || !match[2] || !match[3]) return undefined;
  const revision = Number(match[2]);
  if (!Number.isSafeInteger(revision)) return undefined;
  return { partition: Number(match[1]), revision, chain: match[3] };
}

function decode(text: string): string {
  if (!/^[A-Za-z0-9_-]{4,200}$/.test(text)) return "";
  return Buffer.from(text, "base64url").toString("latin1");
}
