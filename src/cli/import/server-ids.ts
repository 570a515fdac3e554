const LENGTH = 63;

export interface NamedServer {
  readonly name: string;
  readonly serverId: string;
  /** Why it is not the name itself; empty where it is. */
  readonly note: string;
}

/** A valid server_id for each name, in order; two names that would share one are kept apart by a number. */
export function serverIdsFor(names: readonly string[]): NamedServer[] {
  const taken = new Map<string, string>();
  // A name that is a server_id already keeps it, whatever comes before it in the file.
  for (const name of names) if (slug(name) === name) taken.set(name, name);
  return names.map((name) => {
    const wanted = slug(name);
    const owner = taken.get(wanted);
    if (owner === name) return { name, serverId: name, note: "" };
    const serverId = owner === undefined ? wanted : freeOf(wanted, taken);
    taken.set(serverId, name);
    const note = owner === undefined ? "" : `${wanted} is the server_id of ${JSON.stringify(owner)}`;
    return { name, serverId, note };
  });
}

/** `GitHub (work)` → `github-work`. */
function slug(name: string): string {
  const text = name
    .normalize("NFKD")
    .toLowerCase()
    .replace(/\p{M}+/gu, "")
    .replace(/[^a-z0-9._-]+/g, "-")
    .replace(/^[^a-z0-9]+/, "")
    .slice(0, LENGTH);
  return text.replace(/[._-]+$/, "") || "server";
}

function freeOf(wanted: string, taken: ReadonlyMap<string, string>): string {
  for (let n = 2; ; n++) {
    const end = `-${n}`;
    const candidate = wanted.slice(0, LENGTH - end.length) + end;
    if (!taken.has(candidate)) return candidate;
  }
}
