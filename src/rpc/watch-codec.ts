/** Messages of a watch, each put together once from stored bytes and shared by all watchers that get it. */
import type { StubCodec } from "../catalogue/ports.js";
import type { WatchCodec, WatchEvent } from "../catalogue/api.js";
import { toolId } from "../domain/ids.js";
import { EventType } from "../gen/toolcrib/v1/registry_service_pb.js";
import { timestamp } from "./answers.js";
import { AVAILABILITY } from "./translate/server.js";
import { WireWriter } from "./wire-writer.js";

/** Field 1, length-delimited: how every frame begins. */
const FRAME_TAG = 0x0a;
/** Field 4, length-delimited: `Event.stub`. */
const EVENT_STUB_TAG = 0x22;

const EVENT_TYPE: Readonly<Record<WatchEvent["type"], EventType>> = {
  REGISTERED: EventType.REGISTERED,
  UPDATED: EventType.UPDATED,
  DEREGISTERED: EventType.DEREGISTERED,
  EXPIRED: EventType.EXPIRED,
  SCHEMA_INVALIDATED: EventType.SCHEMA_INVALIDATED,
  AVAILABILITY_CHANGED: EventType.AVAILABILITY_CHANGED,
  QUARANTINED: EventType.QUARANTINED,
  RELEASED: EventType.RELEASED,
};

export function createWatchCodec(stubs: Pick<StubCodec, "frame">): WatchCodec {
  return {
    snapshot(frames, last, revision) {
      const tail = new WireWriter()
        .flag(2, last !== undefined)
        .text(3, last?.token ?? "")
        .text(4, revision);
      return new WireWriter().nested(1, ...frames, tail.finish()).finish();
    },

    event(event) {
      return new WireWriter().nested(1, ...eventParts(event, stubs)).finish();
    },

    change(events, token, revision, atMs) {
      const tail = new WireWriter().text(2, token).text(3, revision).nested(4, timestamp(atMs));
      return new WireWriter().nested(2, ...events, tail.finish()).finish();
    },

    bookmark(token, revision) {
      const body = new WireWriter().text(1, token).text(2, revision);
      return new WireWriter().nested(3, body.finish()).finish();
    },
  };
}

function eventParts(event: WatchEvent, stubs: Pick<StubCodec, "frame">): Uint8Array[] {
  const head = new WireWriter().int(1, EVENT_TYPE[event.type]);
  if (event.type === "AVAILABILITY_CHANGED") {
    return [head.text(3, event.serverId).int(7, AVAILABILITY[event.availability]).finish()];
  }
  head.text(2, toolId(event.serverId, event.toolName)).text(3, event.serverId);
  const tail = new WireWriter().text(5, event.oldDigest).text(6, event.newDigest);
  const stub = event.tool ? [stubField(stubs.frame(event.tool, event.availability))] : [];
  return [head.finish(), ...stub, tail.finish()];
}

/** A frame under another field number: both tags are one byte, so only that byte differs. */
function stubField(frame: Uint8Array): Uint8Array {
  if (frame[0] !== FRAME_TAG) throw new Error(`a frame begins with byte ${FRAME_TAG}, not ${frame[0]}`);
  const field = Uint8Array.from(frame);
  field[0] = EVENT_STUB_TAG;
  return field;
}
