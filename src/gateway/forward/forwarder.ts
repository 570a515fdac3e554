/** `tools/call`, forwarded to the server that owns the tool. */
import { setMaxListeners } from "node:events";
import { serverKey, splitToolId } from "../../domain/ids.js";
import { LIMITS } from "../../domain/limits.js";
import { type CallDial, type CallEnd, type Caller, createCaller } from "../../upstream/caller.js";
import type { CheckedDefinition, ForwardAnswer, ForwardCall, Forwarder, ForwarderOptions, ForwardOutcome } from "./api.js";
import { ArgumentChecker } from "./arguments/checker.js";
import { Breakers } from "./breakers.js";
import { inOrder } from "./choice.js";
import { type KnownInstance, type KnownServer, ServerDirectory } from "./directory.js";
import { argumentsProblem } from "./given.js";
import { onTheWay } from "./on-the-way.js";
import { credentialFor, readRules, type ShownCredential } from "./own-credentials.js";
import { Patience } from "./patience.js";
import { Places } from "./places.js";
import { closedServer, failedCall, givenUp, notFound, refused, type Refused, verdictOn } from "./refusals.js";

/** A definition that is not there by then is done without. */
const DEFINITION_MS = 500;

/** Throws an Error with everything that is wrong with the options. */
export function createForwarder(options: ForwarderOptions): Forwarder {
  return new CallForwarder(options);
}

/** What was found out about a call before it is sent. */
interface Prepared {
  readonly call: ForwardCall;
  readonly toolName: string;
  readonly server: KnownServer;
  readonly stale: boolean;
  readonly shown: Exclude<ShownCredential, { kind: "refused" }>;
  readonly inputSchema: unknown;
}

class CallForwarder implements Forwarder {
  readonly #options: ForwarderOptions;
  readonly #caller: Caller;
  readonly #directory: ServerDirectory;
  readonly #breakers: Breakers;
  readonly #places: Places;
  readonly #checker = new ArgumentChecker();
  readonly #rules: ReturnType<typeof readRules>;
  readonly #closing = new AbortController();
  /** Calls under way, by endpoint. */
  readonly #load = new Map<string, number>();
  readonly #underWay = new Set<Promise<unknown>>();
  #lastToken = 0;

  constructor(options: ForwarderOptions) {
    const { clock, logger, registry, callerCredentials = [], random = Math.random } = options;
    this.#options = options;
    // One for each call under way.
    setMaxListeners(0, this.#closing.signal);
    this.#rules = readRules(callerCredentials);
    this.#caller = createCaller(options);
    this.#directory = new ServerDirectory(registry, clock, logger);
    this.#breakers = new Breakers(clock, random);
    this.#places = new Places(options.callsPerServer ?? LIMITS.callsPerServer, options.waitingPerServer ?? LIMITS.callsWaiting);
  }

  async call(call: ForwardCall): Promise<ForwardAnswer> {
    const { clock, logger } = this.#options;
    const beganMs = clock.monotonic();
    const deadlineMs = Math.min(call.deadlineMs ?? this.#options.callMs ?? LIMITS.callMs, LIMITS.callMaxMs);
    const patience = new Patience(clock, deadlineMs, call.signal, this.#closing.signal);
    const work = this.#answer(call, patience).catch((error: unknown) => {
      logger.error({ tool: call.toolId, err: error }, "a call could not be forwarded");
      return refused("protocol", "the gateway failed at this call; its log says why");
    });
    this.#underWay.add(work);
    const answer = await work;
    this.#underWay.delete(work);
    patience.end();
    this.#options.report?.(outcomeOf(call, answer, clock.monotonic() - beganMs));
    return answer;
  }

  changed(namespace: string, serverId: string): void {
    this.#directory.changed(namespace, serverId);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#underWay);
    await this.#caller.close();
  }

  async #answer(call: ForwardCall, patience: Patience): Promise<ForwardAnswer> {
    const prepared = await this.#prepare(call, patience);
    if ("kind" in prepared) return prepared;
    const { namespace, serverId } = prepared.server;
    const place = await this.#places.take(serverKey(namespace, serverId), patience.signal);
    if (place.kind === "aborted") return patience.refusal(false, prepared.stale);
    if (place.kind === "full") return refused("busy", this.#busyText(serverId), prepared.stale, 1_000);
    try {
      return await this.#send(prepared, patience);
    } finally {
      place.leave();
    }
  }

  /** Everything that can be refused without sending anything. */
  async #prepare(call: ForwardCall, patience: Patience): Promise<Prepared | Refused> {
    const { namespace, toolId, args, credential } = call;
    if (patience.over) return patience.refusal(false, false);
    const split = splitToolId(toolId);
    if (!split) return refused("unknown-server", `${JSON.stringify(toolId.slice(0, 200))} is no tool_id: those read server_id/tool_name`);
    const { serverId, toolName } = split;
    const problem = argumentsProblem(args);
    if (problem) return refused(problem.reason, `${toolId} was not called: ${problem.text}`);
    const lookup = Promise.all([this.#directory.find(namespace, serverId), this.#definition(call, patience.signal)]);
    const looked = await patience.wait(lookup);
    if (!looked) return patience.refusal(false, false);
    const [found, definition] = looked;
    if (found.kind !== "known") return notFound(found, serverId, namespace);
    const { server, stale } = found;
    const closed = closedServer(server, stale, this.#options.clock.now());
    if (closed) return closed;
    const checked = definition && this.#checker.check(definition, args);
    if (checked?.problem !== undefined) {
      return refused("arguments", `${toolId} was not called, because its arguments do not fit: ${checked.problem}`, stale);
    }
    const shown = credentialFor(this.#rules, namespace, serverId, credential);
    if (shown.kind === "refused") return refused("credential", shown.text, stale);
    return { call, toolName, server, stale, shown, inputSchema: checked?.inputSchema };
  }

  async #definition({ namespace, toolId }: ForwardCall, signal: AbortSignal): Promise<CheckedDefinition | undefined> {
    const { definition, clock, logger } = this.#options;
    if (!definition) return undefined;
    const enough = new AbortController();
    const late = clock.sleep(DEFINITION_MS, enough.signal).then(() => undefined);
    try {
      return await Promise.race([definition(namespace, toolId, AbortSignal.any([signal, enough.signal])), late]);
    } catch (error) {
      logger.warn({ tool: toolId, err: error }, "the definition of a tool could not be had, so its arguments are not checked");
      return undefined;
    } finally {
      enough.abort();
    }
  }

  /** To one instance after the other, until one may have had the call. */
  async #send(prepared: Prepared, patience: Patience): Promise<ForwardAnswer> {
    const tried = new Set<string>();
    let now = prepared;
    let last: Refused | undefined;
    for (let looks = 0; looks < 2; looks++) {
      for (const instance of this.#candidates(now)) {
        if (tried.has(instance.endpoint)) continue;
        tried.add(instance.endpoint);
        const { answer, elsewhere } = await this.#sendTo(instance, now, patience);
        if (!elsewhere) return answer;
        last = answer;
      }
      // Nobody took it. A server that was started anew may be somewhere else by now.
      const again = await this.#lookAgain(now, patience);
      if (!again) break;
      now = again;
    }
    return last ?? refused("unavailable", `no instance of server ${now.server.serverId} is up. Nothing was sent: try again later`, now.stale);
  }

  #candidates({ server, stale, call }: Prepared): readonly KnownInstance[] {
    return inOrder(server, { stale, session: call.session, load: (endpoint) => this.#load.get(endpoint) ?? 0 });
  }

  async #lookAgain(prepared: Prepared, patience: Patience): Promise<Prepared | undefined> {
    const { namespace, serverId } = prepared.server;
    this.#directory.changed(namespace, serverId);
    const found = await patience.wait(this.#directory.find(namespace, serverId));
    return found?.kind === "known" && found.server.breaker.kind !== "isolated" ? { ...prepared, ...found } : undefined;
  }

  /** `elsewhere`: the call did not get there, and another instance may take it. */
  async #sendTo(instance: KnownInstance, prepared: Prepared, patience: Patience): Promise<Attempt> {
    const { endpoint } = instance;
    const { server, stale, call } = prepared;
    const barred = this.#caller.refusal(endpoint);
    if (barred !== undefined) return passedOver(refused("egress", `server ${server.serverId} may not be called: ${barred}`, stale));
    const admission = this.#breakers.admit(endpoint);
    if (admission.kind === "open") return passedOver(breakerOpen(server.serverId, admission.retryAfterMs, stale));
    const way = onTheWay(call, `toolcrib-${++this.#lastToken}`, this.#options.logger);
    this.#load.set(endpoint, (this.#load.get(endpoint) ?? 0) + 1);
    let end: CallEnd;
    try {
      end = await this.#caller.call(dialOf(instance, prepared), toolCall(prepared, way), patience.signal);
    } finally {
      this.#unload(endpoint);
    }
    const gaveUp = end.kind === "failed" ? patience.over : undefined;
    this.#breakers.tell(endpoint, admission.trial, verdictOn(end, gaveUp, way.heard()));
    if (end.kind === "failed" && gaveUp) return final(givenUp(gaveUp, end.sent, patience.ms, stale));
    if (end.kind !== "failed") return final(answered(end, prepared));
    const answer = failedCall(end, stale);
    const elsewhere = answer.ran === "not-run" && (answer.reason === "unreachable" || answer.reason === "protocol");
    return elsewhere ? passedOver(answer) : final(answer);
  }

  #unload(endpoint: string): void {
    const left = (this.#load.get(endpoint) ?? 1) - 1;
    if (left > 0) this.#load.set(endpoint, left);
    else this.#load.delete(endpoint);
  }

  #busyText(serverId: string): string {
    const { callsPerServer = LIMITS.callsPerServer, waitingPerServer = LIMITS.callsWaiting } = this.#options;
    return `server ${serverId} is busy: ${callsPerServer} calls are under way and ${waitingPerServer} wait, the limits of this gateway. Nothing was sent: try again later`;
  }
}

type Attempt =
  | { readonly elsewhere: false; readonly answer: ForwardAnswer }
  | { readonly elsewhere: true; readonly answer: Refused };

const final = (answer: ForwardAnswer): Attempt => ({ elsewhere: false, answer });
const passedOver = (answer: Refused): Attempt => ({ elsewhere: true, answer });

function breakerOpen(serverId: string, retryAfterMs: number, stale: boolean): Refused {
  const text = `server ${serverId} failed several times in a row and is left alone for ${retryAfterMs} ms. Nothing was sent: use another tool, or try again then`;
  return refused("breaker-open", text, stale, retryAfterMs);
}

function dialOf(instance: KnownInstance, { server, shown, call }: Prepared): CallDial {
  const { endpoint, transport, credential: name } = instance;
  const own = shown.kind === "own" ? shown.own : undefined;
  const credential = name === "" || own ? undefined : { name, namespace: server.namespace, sharePrivate: false };
  return { endpoint, transport, credential, own, session: call.session ?? "" };
}

function toolCall({ call, toolName, inputSchema }: Prepared, { meta, onMessage }: ReturnType<typeof onTheWay>): Parameters<Caller["call"]>[1] {
  const modern = { params: call.more ?? {}, capabilities: call.clientCapabilities };
  return { name: toolName, args: call.args, meta, modern, inputSchema, onMessage };
}

function answered(end: Exclude<CallEnd, { kind: "failed" }>, { call, stale }: Prepared): ForwardAnswer {
  if (end.kind === "rpc-error") return { ...end, stale };
  const { value, text } = end.result;
  if (value["resultType"] === "input_required" && !call.clientCapabilities) {
    return { ...refused("protocol", `${call.toolId} asks for input that its caller did not offer to give. It was not finished`, stale), ran: "may-have-run" };
  }
  if (Buffer.byteLength(text) <= LIMITS.callAnswerBytes) return { kind: "result", value, text, stale };
  const tooLarge = `the answer of ${call.toolId} is larger than ${LIMITS.callAnswerBytes} bytes, the limit of this gateway. It was executed: ask for less`;
  return { ...refused("too-large", tooLarge, stale), ran: "may-have-run" };
}

function outcomeOf({ namespace, toolId }: ForwardCall, answer: ForwardAnswer, latencyMs: number): ForwardOutcome {
  const facts = { namespace, toolId, latencyMs };
  if (answer.kind === "refused") return { ...facts, success: false, errorKind: answer.reason, reached: answer.ran === "may-have-run" };
  if (answer.kind === "rpc-error") return { ...facts, success: false, errorKind: "rpc-error", reached: true };
  const failed = answer.value["isError"] === true;
  return { ...facts, success: !failed, errorKind: failed ? "tool-error" : "", reached: true };
}
