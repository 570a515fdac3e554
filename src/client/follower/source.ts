import type { MessageInitShape } from "@bufbuild/protobuf";
import type { WatchRequestSchema, WatchResponse } from "../../gen/toolcrib/v1/registry_service_pb.js";
import { RegistryConnection } from "../connection.js";
import type { Target } from "../target.js";

/**
 * Opens one Watch and yields its messages until it fails or `signal` is aborted, when it ends at once. `onOpen` hears that the
 * registry took it up.
 */
export type WatchSource = (
  target: Target,
  request: MessageInitShape<typeof WatchRequestSchema>,
  signal: AbortSignal,
  onOpen: () => void,
) => AsyncIterable<WatchResponse>;

/** A connection per stream: one that died without a word must not be used for the next. */
export const overGrpc: WatchSource = async function* (target, request, signal, onOpen) {
  const connection = new RegistryConnection(target);
  try {
    yield* connection.watch(request, signal, onOpen);
  } finally {
    connection.close();
  }
};
