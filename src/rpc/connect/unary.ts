/** Runs one unary call: deadline, draining, stale header, and exactly one answer. */
import type { Message } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { Fault } from "../../domain/fault.js";
import { LIMITS } from "../../domain/limits.js";
import type { Door } from "../identity/door.js";
import type { Deps } from "../observe.js";
import { draining } from "../open-streams.js";
import { type Answer, type UnaryMethod, sizeOf } from "../services/method.js";
import { messageTooLarge } from "../sizes.js";
import type { HttpCall } from "./call.js";
import { toAnswer } from "./json.js";

export interface UnaryDeps extends Pick<Deps, "refusal"> {
  readonly door: Door;
  readonly isDraining: () => boolean;
  /** For callers that set none, ms. */
  readonly defaultDeadlineMs: number;
}

/** Rejects with a ConnectError, and with nothing else. */
export async function answerUnary(
  method: UnaryMethod,
  call: HttpCall,
  context: HandlerContext,
  deps: UnaryDeps,
): Promise<Message> {
  try {
    const answer = await run(method, call, deps);
    const bytes = sizeOf(answer);
    if (bytes > LIMITS.messageBytes) throw messageTooLarge("answer", bytes);
    if (answer.stale) context.responseHeader.set("toolcrib-stale", "true");
    return toAnswer(method.output, Buffer.concat(answer.parts), call.form.json);
  } catch (thrown) {
    throw call.refuse(thrown);
  }
}

async function run(method: UnaryMethod, call: HttpCall, deps: UnaryDeps): Promise<Answer> {
  if (deps.isDraining() && method.draining === "refused") throw draining();
  const refusal = deps.refusal?.(method.path);
  if (refusal) throw refusal;
  const timeoutMs = call.timeoutMs();
  if (timeoutMs !== undefined && call.remaining(timeoutMs) <= 0)
    throw new Fault("DEADLINE", "the caller's deadline passed before the call began");
  const expire = () =>
    timeoutMs === undefined
      ? new Fault(
          "DEADLINE",
          `no answer within ${deps.defaultDeadlineMs} ms, the registry's own deadline: set a longer one on the call`,
        )
      : new Fault("DEADLINE", "the caller's deadline passed");
  return call.within(timeoutMs ?? deps.defaultDeadlineMs, expire, async () => {
    const { api } = await deps.door.enter(call.credentials());
    const request = await call.read(method.input);
    const deadlineMs = timeoutMs === undefined ? undefined : call.remaining(timeoutMs);
    return method.handle(api, request, { deadlineMs });
  });
}
