import { execFileSync } from "node:child_process";
import { mkdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { Problems } from "../../../src/files/problems.js";
import { watchFolder } from "../../../src/files/watched-folder.js";
import { temporaryFolder } from "../../support/registry.js";
import { eventually } from "../../support/upstream.js";

interface Line {
  readonly level: string;
  readonly fields: { readonly problems?: readonly string[]; readonly file?: string };
}

function watch(path: string, lines: Line[] = []) {
  const write = (level: string) => (fields: object) => void lines.push({ level, fields });
  const folder = watchFolder<string>({
    what: "the notes",
    path,
    endings: [".txt", ".text"],
    names: { pattern: /^[a-z]+$/, expected: "a word in small letters" },
    maxFiles: 5,
    maxBytes: 100,
    parse: (name, content) =>
      content.includes("bad") ? { ok: false, problems: [`${name} is bad`] } : { ok: true, value: content.toString() },
    log: { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") },
  });
  onTestFinished(() => folder.close());
  return folder;
}

it("holds what stands in the folder: what comes, changes, goes, and is moved there by a link", async () => {
  const path = await temporaryFolder();
  await writeFile(join(path, "a.txt"), "one");
  await writeFile(join(path, ".hidden.txt"), "bad");
  await writeFile(join(path, "README.md"), "bad");
  const folder = watch(path);
  const now = () => Object.fromEntries(folder.value);
  expect([now(), folder.valid]).toEqual([{ a: "one" }, true]);
  await writeFile(join(path, "b.text"), "two");
  await eventually(now, (value) => value["b"] === "two");
  await mkdir(join(path, "..data"));
  await writeFile(join(path, "..data", "a"), "three");
  await symlink(join("..data", "a"), join(path, "link.new"));
  await rename(join(path, "link.new"), join(path, "a.txt"));
  await eventually(now, (value) => value["a"] === "three");
  await rm(join(path, "b.text"));
  await eventually(now, (value) => value["b"] === undefined);
});

it("keeps what was there before where something cannot be used, says so once, and says when it is well again", async () => {
  const path = await temporaryFolder();
  await writeFile(join(path, "a.txt"), "one");
  const lines: Line[] = [];
  const folder = watch(path, lines);
  let heard = 0;
  folder.onChange(() => heard++);
  await writeFile(join(path, "a.txt"), "bad");
  await eventually(() => folder.valid, (valid) => !valid);
  expect([folder.value.get("a"), heard]).toEqual(["one", 1]);
  execFileSync("mkfifo", [join(path, "pipe.txt")]);
  await writeFile(join(path, "Upper.txt"), "x");
  await writeFile(join(path, "long.txt"), "x".repeat(101));
  await writeFile(join(path, "a.text"), "twice");
  const problems = () => lines.filter(({ level }) => level === "error").flatMap(({ fields }) => fields.problems ?? []);
  await eventually(problems, (all) => all.length >= 5);
  expect(folder.value.get("a")).toBe("one");
  // A whole look later nothing was told again.
  await writeFile(join(path, "b.txt"), "fine");
  await eventually(() => folder.value.get("b"), (value) => value === "fine");
  expect(problems().sort()).toEqual([
    "a is bad", "a.text is for a as well", "it has 101 bytes, at most 100 are taken", "it is no file", "its name must be a word in small letters",
  ]);
  for (const name of ["pipe.txt", "Upper.txt", "long.txt", "a.text"]) await rm(join(path, name));
  await writeFile(join(path, "a.txt"), "well");
  await eventually(() => folder.valid && folder.value.get("a"), (value) => value === "well");
});

it("throws everything that is wrong at the start", async () => {
  const path = await temporaryFolder();
  for (const [name, text] of [["a.txt", "bad"], ["b.txt", "fine"], ["c.txt", "bad"]] as const) await writeFile(join(path, name), text);
  const error = (() => {
    try {
      watch(path);
    } catch (thrown) {
      return thrown;
    }
    return undefined;
  })();
  expect(error).toBeInstanceOf(Problems);
  expect((error as Problems).sentences).toEqual([
    `The notes ${join(path, "a.txt")} cannot be used: a is bad.`,
    `The notes ${join(path, "c.txt")} cannot be used: c is bad.`,
  ]);
  expect(() => watch(join(path, "nowhere"))).toThrow("cannot be read: ENOENT");
});
