/** Runs one unary call: deadline, draining, stale header, and exactly one answer. */
import { Metadata, type handleUnaryCall } from "@grpc/grpc-js";
import { Fault } from "../../domain/fault.js";
import type { Credentials } from "../identity/authenticator.js";
import type { Door } from "../identity/door.js";
import type { Deps } from "../observe.js";
import { draining } from "../open-streams.js";
import { type Answer, type UnaryMethod, decode } from "../services.js";
import { credentialsOf } from "./credentials.js";
import { SharedDeadline } from "./shared-deadline.js";
import { refuse } from "./status.js";

export interface UnaryDeps extends Deps {
  readonly door: Door;
  readonly isDraining: () => boolean;
  /** For callers that set none, ms. */
  readonly defaultDeadlineMs: number;
}

const STALE = new Metadata();
STALE.set("toolcrib-stale", "true");

export function unaryHandler(label: string, method: UnaryMethod, deps: UnaryDeps): handleUnaryCall<Buffer, Buffer> {
  const shared = new SharedDeadline(deps.defaultDeadlineMs);
  return (call, callback) => {
    let open = true;
    /** Whether somebody still waits for the answer; asked once, when there is one. */
    const settle = (): boolean => {
      const waits = open && !call.cancelled;
      open = false;
      if (waiting) shared.delete(waiting);
      return waits;
    };
    const fail = (thrown: unknown) => {
      const waits = settle();
      // A bug is logged even when nobody waits for its answer any more.
      if (!waits && thrown instanceof Fault) return;
      const status = refuse(deps.log, label, call.getPeer(), thrown);
      if (waits) callback(status);
    };
    const deadlineMs = remaining(call.getDeadline());
    const waiting =
      deadlineMs === undefined ? shared.add(() => fail(serverDeadline(deps.defaultDeadlineMs))) : undefined;
    run(method, deps, credentialsOf(call), call.request, deadlineMs).then((answer) => {
      if (!settle()) return;
      if (answer.stale) call.sendMetadata(STALE.clone());
      callback(null, answer.body);
    }, fail);
  };
}

async function run(
  method: UnaryMethod,
  deps: UnaryDeps,
  credentials: Credentials,
  request: Buffer,
  deadlineMs: number | undefined,
): Promise<Answer> {
  if (deps.isDraining() && method.draining === "refused") throw draining();
  if (deadlineMs !== undefined && deadlineMs <= 0)
    throw new Fault("DEADLINE", "the caller's deadline passed before the call began");
  const entering = deps.door.enter(credentials);
  // A read in memory waits for nothing, not even for the next turn.
  const { api } = entering instanceof Promise ? await entering : entering;
  return method.handle(api, decode(method.input, request), { deadlineMs });
}

function remaining(deadline: Date | number): number | undefined {
  const at = typeof deadline === "number" ? deadline : deadline.getTime();
  return at === Number.POSITIVE_INFINITY ? undefined : at - Date.now();
}

function serverDeadline(ms: number): Fault {
  return new Fault("DEADLINE", `no answer within ${ms} ms, the registry's own deadline: set a longer one on the call`);
}
