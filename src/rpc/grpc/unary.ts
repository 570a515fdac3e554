/** Runs one unary call: deadline, draining, stale header, and exactly one answer. */
import { Metadata, type handleUnaryCall } from "@grpc/grpc-js";
import { Fault } from "../../domain/fault.js";
import type { Api } from "../api.js";
import type { Credentials } from "../identity/authenticator.js";
import type { AnswerCache } from "../answer-cache.js";
import type { Caller, Door } from "../identity/door.js";
import type { Deps } from "../observe.js";
import { draining } from "../open-streams.js";
import { type Answer, type UnaryMethod, decode } from "../services/method.js";
import { credentialsOf } from "./credentials.js";
import { asMessage } from "./internals.js";
import { SharedDeadline } from "./shared-deadline.js";
import { refuse } from "./status.js";

export interface UnaryDeps extends Deps {
  readonly door: Door;
  readonly answers: AnswerCache;
  /** Metric hook: a call was answered with what the same question was answered before. */
  readonly onRepeated?: (method: string) => void;
  readonly isDraining: () => boolean;
  /** For callers that set none, ms. */
  readonly defaultDeadlineMs: number;
}

const STALE = new Metadata();
STALE.set("toolcrib-stale", "true");

export function unaryHandler(label: string, method: UnaryMethod, deps: UnaryDeps): handleUnaryCall<Buffer, Buffer> {
  const shared = new SharedDeadline(deps.defaultDeadlineMs);
  return (call, callback) => {
    const entering = enter(deps.door, credentialsOf(call));
    const known = entering instanceof Promise ? undefined : repeated(label, method, deps, entering.api, call.request);
    if (known) {
      if (known.stale) call.sendMetadata(STALE.clone());
      return callback(null, asMessage(known.parts));
    }
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
    run(label, method, deps, entering, call.request, deadlineMs).then((answer) => {
      if (!settle()) return;
      if (answer.stale) call.sendMetadata(STALE.clone());
      callback(null, asMessage(answer.parts));
    }, fail);
  };
}

function enter(door: Door, credentials: Credentials): Caller | Promise<Caller> {
  try {
    return door.enter(credentials);
  } catch (thrown) {
    return Promise.reject(thrown);
  }
}

/** The answer to a question that this caller asked before, if nothing has changed since. */
function repeated(
  label: string,
  method: UnaryMethod,
  deps: UnaryDeps,
  api: Api,
  request: Buffer,
): Answer | undefined {
  if (!method.repeatable || deps.isDraining()) return undefined;
  const key = deps.answers.key(api, label, request);
  const answer = key === undefined ? undefined : deps.answers.get(key, api.version);
  if (answer) deps.onRepeated?.(label);
  return answer;
}

async function run(
  label: string,
  method: UnaryMethod,
  deps: UnaryDeps,
  entering: Caller | Promise<Caller>,
  request: Buffer,
  deadlineMs: number | undefined,
): Promise<Answer> {
  // A read in memory waits for nothing, not even for the next turn.
  const { api } = entering instanceof Promise ? await entering : entering;
  if (deps.isDraining() && method.draining === "refused") throw draining();
  if (deadlineMs !== undefined && deadlineMs <= 0)
    throw new Fault("DEADLINE", "the caller's deadline passed before the call began");
  const { version } = api;
  const answer = await method.handle(api, decode(method.input, request), { deadlineMs });
  const key = answer.repeats ? deps.answers.key(api, label, request) : undefined;
  if (key !== undefined && version === api.version) deps.answers.put(key, version, answer);
  return answer;
}

function remaining(deadline: Date | number): number | undefined {
  const at = typeof deadline === "number" ? deadline : deadline.getTime();
  return at === Number.POSITIVE_INFINITY ? undefined : at - Date.now();
}

function serverDeadline(ms: number): Fault {
  return new Fault("DEADLINE", `no answer within ${ms} ms, the registry's own deadline: set a longer one on the call`);
}
