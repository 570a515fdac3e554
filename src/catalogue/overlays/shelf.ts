import type { Overlay } from "../../domain/overlay.js";
import type { ServerRecord } from "../../domain/server.js";
import { type ShelfKind, ToolShelf } from "../shelf.js";
import type { Writes } from "../writes.js";

/** Tool name → overlay. */
export type Overlays = ReadonlyMap<string, Overlay>;

const OVERLAYS: ShelfKind<Overlay> = {
  name: "overlays",
  quota: "overlay_bytes",
  remedy: "withdraw what is inactive, or shorten some",
  in: overlaysIn,
  encode: ({ overlays }, all) => overlays.encodeShelf(all),
  decode: ({ overlays }, bytes) => overlays.decodeShelf(bytes),
};

/** The overlays approved for one server, whether they fit now or not. */
export class Shelf extends ToolShelf<Overlay> {
  constructor(writes: Writes, namespace: string, serverId: string) {
    super(OVERLAYS, writes, namespace, serverId);
  }
}

export function overlaysIn(record: ServerRecord | undefined): readonly Overlay[] {
  return (record?.tools ?? []).flatMap(({ overlay }) => overlay?.overlay ?? []);
}
