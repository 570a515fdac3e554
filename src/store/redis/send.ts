import type { Reply } from "./reply.js";

/** One command to one server. */
export type Send = (command: string, args: readonly (string | number)[]) => Promise<Reply>;

/** Redis is there and cannot be used as it is. The message is a sentence for the operator. */
export class MisfitError extends Error {
  override readonly name = "MisfitError";
}
