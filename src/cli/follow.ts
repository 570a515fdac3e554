import type { RegistryConnection } from "../client/connection.js";
import { createFollower, type Follower } from "../client/follower/follower.js";
import type { FollowerOptions } from "../client/follower/options.js";

/**
 * Follows until it is ended. Rejects with RegistryError where the first list cannot be read, because then there is nobody to wait
 * for, and where trying again cannot help. `listen` is called before it starts.
 */
export async function follow(
  { target }: RegistryConnection,
  options: Pick<FollowerOptions, "namespace" | "filter">,
  listen: (follower: Follower) => void,
  ending: AbortSignal,
): Promise<void> {
  const follower = createFollower({ ...options, targets: [target], signal: ending });
  listen(follower);
  const over = new Promise<void>((resolve, reject) => {
    follower.on("state", (state) => {
      if (state.kind === "stopped") resolve();
      else if (state.kind === "refused" || (state.kind === "connecting" && state.error)) reject(state.error);
    });
  });
  if (ending.aborted) return;
  try {
    follower.start();
    await over;
  } finally {
    await follower.stop();
  }
}
