/** A registry that breaks one promise by one part of it. */
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { type WatchResponse, WatchResponseSchema } from "../../../src/gen/toolcrib/v1/registry_service_pb.js";
import type { SceneParts } from "../scene.js";
import type { ScriptName } from "../scripts.js";
import type { Broken } from "../site.js";
import type { Promised } from "../validators.js";

export interface Mutant {
  readonly promise: Promised;
  readonly name: string;
  readonly script: ScriptName;
  readonly parts: SceneParts;
  /** Other promises that the same fault breaks in this story. */
  readonly also?: readonly Promised[];
}

type Write = (message: MessageInitShape<typeof WatchResponseSchema>) => void;

/**
 * A hub whose watchers get what `make` makes of each message. One `make` a watcher; `nth` counts them from 0 in the order in
 * which they came.
 */
export function hub(make: (nth: number) => (message: WatchResponse, write: Write) => void): Broken {
  return {
    api(real) {
      let watchers = 0;
      return {
        watch(input, sink) {
          const change = make(watchers++);
          return real.watch(input, {
            write(bytes) {
              change(fromBinary(WatchResponseSchema, bytes), (message) => {
                sink.write(toBinary(WatchResponseSchema, create(WatchResponseSchema, message)));
              });
              return true;
            },
            fail: (fault) => sink.fail(fault),
          });
        },
      };
    },
  };
}

/** Counts from 1; `hit` runs for the one with this number. */
export function at(number: number): () => boolean {
  let count = 0;
  return () => ++count === number;
}
