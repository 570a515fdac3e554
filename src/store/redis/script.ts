/** Lua scripts, read from the files beside this one, and called by their hash. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

export interface Script {
  readonly source: string;
  readonly sha: string;
}

function script(source: string): Script {
  return { source, sha: createHash("sha1").update(source).digest("hex") };
}

function read(name: string): string {
  return readFileSync(new URL(`./${name}.lua`, import.meta.url), "utf8");
}

const commitSource = read("commit");

export const SCRIPTS = {
  commit: script(commitSource),
  /** The same for what only gives back: a full Redis must not keep servers from leaving. */
  commitFreeing: script(commitSource.replace(/^#!lua\n/, "#!lua flags=allow-oom\n")),
  renew: script(read("renew")),
  extend: script(read("extend")),
  due: script(read("due")),
  buried: script(read("buried")),
  blobPut: script(read("blob-put")),
  blobTouch: script(read("blob-touch")),
  blobSweep: script(read("blob-sweep")),
  notePut: script(read("note-put")),
  noteRemove: script(read("note-remove")),
  rights: script(read("rights")),
} as const;
