import type { MessageInitShape } from "@bufbuild/protobuf";
import type { StubFilterSchema } from "../../gen/toolcrib/v1/stub_pb.js";
import { registryTarget } from "../environment.js";
import { type Target, TargetError } from "../target.js";
import type { RandomSource, Timers } from "../timers.js";
import type { WatchSource } from "./source.js";

/** What to follow, and where. */
export interface FollowerOptions {
  /**
   * Addresses of replicas of one registry, as `parseTarget` reads them or as it answered; default `TOOLCRIB_URL`, else
   * 127.0.0.1:7850. The first is chosen at random, each loss leads to the next.
   */
  readonly targets?: string | Target | readonly (string | Target)[];
  /** Tenant; default `default`. */
  readonly namespace?: string;
  /** Only these tools; default all. */
  readonly filter?: MessageInitShape<typeof StubFilterSchema>;
  /** Bearer token, or who knows it now; default what the environment names (TOOLCRIB_TOKEN, TOOLCRIB_TOKEN_FILE). */
  readonly token?: string | (() => string | undefined);
  /** A stream that says nothing for longer is given up, ms; default 25,000. The registry speaks every 10 s. */
  readonly silenceMs?: number;
  /** Stops the follower. */
  readonly signal?: AbortSignal;
  /** Default: timers that keep the process alive while it follows. */
  readonly timers?: Timers;
  readonly random?: RandomSource;
  /** Default: gRPC. */
  readonly source?: WatchSource;
}

/** At least one. Throws TargetError and AccessError. */
export function targetsOf({ targets, token }: FollowerOptions): readonly [Target, ...Target[]] {
  const given = targets === undefined || typeof targets === "string" || "address" in targets ? [targets] : targets;
  const [first, ...rest] = given.map((one) => withToken(typeof one === "object" ? one : registryTarget(one), token));
  if (!first) throw new TargetError("", "the list of targets is empty");
  return [first, ...rest];
}

function withToken(target: Target, token: FollowerOptions["token"]): Target {
  if (token === undefined) return target;
  return { ...target, access: { ...target.access, token: typeof token === "string" ? () => token : token } };
}
