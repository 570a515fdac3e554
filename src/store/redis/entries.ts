/** The head hash and the stream's entries as values. */
import { EMPTY_CHAIN } from "../../domain/revision.js";
import { copyBytes } from "../codec/rows.js";
import type { EntryRow } from "../prepare.js";
import type { Reply } from "./reply.js";
import { bytesOf, listOf, numberOf, textOf } from "./reply.js";

export const HEAD_FIELDS = ["revision", "chain", "base", "base_chain"] as const;

export interface Head {
  readonly revision: number;
  readonly chain: string;
  /** The place before the oldest kept entry. */
  readonly base: number;
  readonly baseChain: string;
}

/** Values of HEAD_FIELDS; an absent hash is an empty log. */
export function parseHead(reply: readonly Reply[]): Head {
  const [revision, chain, base, baseChain] = reply;
  return {
    revision: revision ? numberOf(revision) : 0,
    chain: chain ? textOf(chain) : EMPTY_CHAIN,
    base: base ? numberOf(base) : 0,
    baseChain: baseChain ? textOf(baseChain) : EMPTY_CHAIN,
  };
}

/** One element of an XREAD or XRANGE reply. */
export function entryRowOf(reply: Reply): EntryRow {
  const [id, fields] = listOf(reply);
  const values = new Map<string, Reply>();
  const flat = listOf(fields);
  for (let i = 0; i + 1 < flat.length; i += 2) values.set(textOf(flat[i]), flat[i + 1] ?? null);
  return {
    revision: Number.parseInt(textOf(id), 10),
    prev: textOf(values.get("prev")),
    chain: textOf(values.get("chain")),
    atMs: numberOf(values.get("at")),
    body: copyBytes(bytesOf(values.get("body"))),
  };
}
