/** A file that holds one key for somebody else's API. */
import type { Logger } from "../catalogue/ports.js";
import { type Parsed, type WatchedFiles, watchFiles } from "./watched-file.js";

/** `what` is for messages, such as `the embedder's key`. Throws an Error when there is no key in the file. */
export function watchKey(what: string, path: string, log: Logger): WatchedFiles<string> {
  return watchFiles({ what, paths: [path], parse: ([content]) => readKey(content ?? Buffer.alloc(0)), log });
}

function readKey(content: Buffer): Parsed<string> {
  const value = content.toString("utf8").trim();
  return /^[\x21-\x7e]{1,4096}$/.test(value)
    ? { ok: true, value }
    : { ok: false, problems: ["it must hold 1 to 4,096 characters of visible ASCII"] };
}
