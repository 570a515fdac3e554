import type { Quarantine } from "../../domain/quarantine.js";
import type { ServerRecord } from "../../domain/server.js";
import { type ShelfKind, ToolShelf } from "../shelf.js";
import type { Writes } from "../writes.js";

const QUARANTINES: ShelfKind<Quarantine> = {
  name: "quarantines",
  quota: "quarantine_bytes",
  remedy: "approve any definition of those tools that need no approval any more, or isolate the server",
  in: quarantinesIn,
  encode: ({ quarantines }, all) => quarantines.encodeShelf(all),
  decode: ({ quarantines }, bytes) => quarantines.decodeShelf(bytes),
};

/** The quarantines of one server's tools, whether the tools are there now or not. */
export class QuarantineShelf extends ToolShelf<Quarantine> {
  constructor(writes: Writes, namespace: string, serverId: string) {
    super(QUARANTINES, writes, namespace, serverId);
  }
}

export function quarantinesIn(record: ServerRecord | undefined): readonly Quarantine[] {
  return (record?.tools ?? []).flatMap(({ quarantine }) => quarantine ?? []);
}
