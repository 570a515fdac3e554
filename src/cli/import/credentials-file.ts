import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { ParseError } from "jsonc-parser";
import { applyEdits, modify, parse } from "jsonc-parser";
import { CommandError } from "../io.js";
import type { SecretHeader } from "./secret-header.js";

const FORMAT = { insertSpaces: true, tabSize: 2, eol: "\n" };

/** A credential for one server, to be named by it. */
export interface WantedCredential {
  readonly name: string;
  readonly namespace: string;
  /** The only host to which the registry may send it. */
  readonly host: string;
  readonly secret: SecretHeader;
}

/** The registry's `--upstream-credentials` file, as its operator edits it. */
export class CredentialsFile {
  #text: string;
  readonly #names: Set<string>;

  private constructor(
    readonly path: string,
    text: string,
    names: Iterable<string>,
  ) {
    this.#text = text;
    this.#names = new Set(names);
  }

  /** A file that is not there yet is an empty one. Throws CommandError where it cannot be read. */
  static open(path: string): CredentialsFile {
    const text = existsSync(path) ? readFileSync(path, "utf8") : '{\n  "credentials": []\n}\n';
    const errors: ParseError[] = [];
    const root: unknown = parse(text, errors);
    const list = (root as { readonly credentials?: unknown } | undefined)?.credentials;
    if (errors.length > 0 || !Array.isArray(list)) {
      throw new CommandError(`${path} is no credentials file: it needs {"credentials": […]}; nothing was changed`);
    }
    const names = list.map((entry: unknown) => String((entry as { readonly name?: unknown } | null)?.name ?? ""));
    return new CredentialsFile(resolve(path), text, names);
  }

  has(name: string): boolean {
    return this.#names.has(name);
  }

  /** Where a literal value is put, readable by its owner alone. */
  secretPath(name: string): string {
    return join(dirname(this.path), `${name}.secret`);
  }

  /** Writes the value first and the entry after it, so that the registry never reads an entry without its value. */
  add({ name, namespace, host, secret }: WantedCredential): void {
    mkdirSync(dirname(this.path), { recursive: true, mode: 0o700 });
    const value =
      secret.source.kind === "env" ? { env: secret.source.name } : { file: this.#keep(name, secret.source.value) };
    const prefix = secret.prefix === "" ? {} : { prefix: secret.prefix };
    const entry = { name, namespaces: [namespace], header: secret.header, ...prefix, value, hosts: [host] };
    const edits = modify(this.#text, ["credentials", -1], entry, { isArrayInsertion: true, formattingOptions: FORMAT });
    this.#text = applyEdits(this.#text, edits);
    replaceFile(this.path, this.#text);
    this.#names.add(name);
  }

  #keep(name: string, value: string): string {
    const path = this.secretPath(name);
    if (existsSync(path)) throw new CommandError(`${path} is there already, and is not overwritten: move it away`);
    replaceFile(path, value);
    return path;
  }
}

/** Readers see the old file or the new one whole. */
function replaceFile(path: string, text: string): void {
  const fresh = `${path}.new`;
  rmSync(fresh, { force: true });
  writeFileSync(fresh, text, { mode: 0o600 });
  chmodSync(fresh, 0o600);
  renameSync(fresh, path);
}
