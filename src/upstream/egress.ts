/** The only way out: every request to an MCP server passes here. */
import type { LookupAddress, LookupAllOptions } from "node:dns";
import { lookup } from "node:dns";
import { Agent as HttpAgent, request as httpRequest } from "node:http";
import type { AgentOptions, ClientRequest, IncomingMessage, RequestOptions } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import type { LookupFunction } from "node:net";
import { UpstreamError } from "../catalogue/upstream-port.js";
import { canonicalAddress } from "../domain/admission/address.js";
import { addressDenial, type EgressPolicy, endpointDenial, type Own, plainTextDenial, type Target, targetOf } from "../domain/admission/egress.js";
import { LIMITS } from "../domain/limits.js";
import { place, timedOut } from "./failures.js";

export interface EgressRequest {
  readonly method: "GET" | "POST" | "DELETE";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** For the sentence of a timeout: "initialize", "tools/list". */
  readonly purpose: string;
  /** Holds a secret: without TLS it goes to loopback and private addresses alone. */
  readonly secret?: true;
  /** It is never sent a second time, whatever happens. */
  readonly once?: Once | undefined;
}

/** For requests that do something: whoever sends one has to know whether the server may have it. */
export interface Once {
  /** From now on it may. */
  onSent(): void;
}

export interface EgressResponse {
  readonly status: number;
  header(name: string): string | undefined;
  /** The body as it arrives, at most `limit` bytes; throws UpstreamError. Leaving the loop early closes the connection. */
  chunks(limit: number): AsyncGenerator<Buffer>;
  /** The whole body, at most `limit` bytes; throws UpstreamError. */
  read(limit: number): Promise<Buffer>;
  /** Closes the connection without reading on. */
  discard(): void;
}

export interface Egress {
  /** Why this endpoint may not be dialled; undefined = it may. */
  refusal(endpoint: string): string | undefined;
  /** Resolves with the head of the answer. Redirects are not followed. Throws UpstreamError. */
  request(endpoint: string, request: EgressRequest, signal: AbortSignal): Promise<EgressResponse>;
  /** Drops idle connections. */
  close(): void;
}

/** All addresses of a name, as `dns.lookup` gives them. */
export type Resolve = (
  hostname: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

interface Dialler {
  readonly http: HttpAgent;
  /** Apart, because a kept connection is not judged again, and the others may lead anywhere. */
  readonly httpInside: HttpAgent;
  readonly https: HttpsAgent;
}

/**
 * How long an idle connection is kept for requests that are sent once. A server that closes it at the very moment it is used
 * again leaves open what became of the request, and few servers close one that soon.
 */
const ONCE_IDLE_MS = 1_000;

/**
 * Names are looked up once, judged, and dialled at exactly the addresses that were judged, with the name kept for SNI and
 * Host. Proxy variables of the environment are not looked at: a proxy would dial what was refused here.
 */
export function createEgress(policy: EgressPolicy, resolve: Resolve = lookup): Egress {
  const often = diallerOf({ keepAlive: true, maxFreeSockets: 4 });
  const once = diallerOf({ keepAlive: true, maxFreeSockets: 4, timeout: ONCE_IDLE_MS });
  const refusal = (endpoint: string) => endpointDenial(policy, endpoint);
  const send = async (
    endpoint: string,
    request: EgressRequest,
    signal: AbortSignal,
    attempt: number,
  ): Promise<EgressResponse> => {
    const reason = refusal(endpoint);
    if (reason !== undefined) throw new UpstreamError("egress", reason);
    const dialler = request.once ? once : often;
    try {
      return await dial(dialler, endpoint, request, signal, await judging(policy, resolve, endpoint, request, signal));
    } catch (error) {
      // A kept connection may have been closed by the server at the very moment it was reused; nothing was answered then.
      if (error instanceof StaleConnection && attempt === 0 && !request.once) return send(endpoint, request, signal, 1);
      if (error instanceof StaleConnection) throw error.asUpstream(endpoint);
      throw translated(endpoint, request, signal, error as NodeJS.ErrnoException);
    }
  };
  return {
    refusal,
    request: (endpoint, request, signal) => send(endpoint, request, signal, 0),
    close: () => {
      for (const agent of [often, once].flatMap(({ http, httpInside, https }) => [http, httpInside, https])) agent.destroy();
    },
  };
}

function diallerOf(options: AgentOptions): Dialler {
  return { http: new HttpAgent(options), httpInside: new HttpAgent(options), https: new HttpsAgent(options) };
}

class StaleConnection extends Error {
  asUpstream(endpoint: string): UpstreamError {
    return new UpstreamError("connect", `${place(endpoint)} closed the connection without an answer`, this.cause);
  }
}

function dial(
  dialler: Dialler,
  endpoint: string,
  request: EgressRequest,
  signal: AbortSignal,
  lookup: LookupFunction,
): Promise<EgressResponse> {
  const url = new URL(endpoint);
  const secure = url.protocol === "https:";
  const options: RequestOptions = {
    method: request.method,
    agent: secure ? dialler.https : request.secret ? dialler.httpInside : dialler.http,
    headers: { "accept-encoding": "identity", ...request.headers },
    lookup,
    signal,
    maxHeaderSize: LIMITS.upstreamHeaderBytes,
    insecureHTTPParser: false,
  };
  return new Promise((resolve, reject) => {
    const outgoing: ClientRequest = secure ? httpsRequest(url, options) : httpRequest(url, options);
    outgoing.once("response", (incoming) => resolve(responseOf(endpoint, request, incoming, signal)));
    outgoing.once("error", (error: NodeJS.ErrnoException) => {
      const broken = error.code === "ECONNRESET" || error.code === "EPIPE";
      if (outgoing.reusedSocket && broken && !signal.aborted) reject(new StaleConnection("stale", { cause: error }));
      else reject(translated(endpoint, request, signal, error));
    });
    outgoing.on("socket", (socket) => {
      socket.setKeepAlive(true, 30_000);
      if (!request.once) return;
      if (outgoing.reusedSocket || !socket.connecting) request.once.onSent();
      else socket.once(secure ? "secureConnect" : "connect", request.once.onSent);
    });
    outgoing.end(request.body);
  });
}

/** The lookup of one request: it fails where an address may not be dialled. An endpoint without a name is judged here. */
async function judging(
  policy: EgressPolicy,
  resolve: Resolve,
  endpoint: string,
  request: EgressRequest,
  signal: AbortSignal,
): Promise<LookupFunction> {
  const url = new URL(endpoint);
  const target = targetOf(url);
  const openly = request.secret === true && url.protocol !== "https:";
  const exposed = openly ? plainTextDenial(target, target.host) : undefined;
  if (exposed !== undefined) throw new UpstreamError("credential", exposed);
  const own = await ownByName(policy, resolve, target, signal);
  if (own.length > 0 && canonicalAddress(target.host) !== undefined) {
    const reason = addressDenial(policy, target, target.host, own);
    if (reason !== undefined) throw new UpstreamError("egress", reason);
  }
  return (hostname, options, callback) => {
    resolve(hostname, { ...options, all: true }, (error, addresses) => {
      const [first] = addresses ?? [];
      if (error || !first) return callback(error ?? Object.assign(new Error("no address"), { code: "ENODATA" }), []);
      for (const { address } of addresses) {
        const reason = addressDenial(policy, target, address, own);
        if (reason !== undefined) return callback(new UpstreamError("egress", reason), []);
        const shown = openly ? plainTextDenial(target, address) : undefined;
        if (shown !== undefined) return callback(new UpstreamError("credential", shown), []);
      }
      if (options.all) return callback(null, addresses);
      return callback(null, first.address, first.family);
    });
  };
}

/** Own things on the target's port of which only the name is known, such as the store, at the addresses they have now. */
async function ownByName(
  policy: EgressPolicy,
  resolve: Resolve,
  target: Target,
  signal: AbortSignal,
): Promise<readonly Own[]> {
  const named = policy.own().filter((one) => one.port === target.port && canonicalAddress(one.host) === undefined);
  const found = named.map(async (one) => {
    const addresses = await addressesOf(resolve, one.host, signal);
    return addresses.map(({ address }) => ({ ...one, host: address }));
  });
  return (await Promise.all(found)).flat();
}

function addressesOf(resolve: Resolve, hostname: string, signal: AbortSignal): Promise<readonly LookupAddress[]> {
  return new Promise((done, fail) => {
    const leave = () => fail(signal.reason);
    signal.addEventListener("abort", leave, { once: true });
    resolve(hostname, { all: true }, (error, addresses) => {
      signal.removeEventListener("abort", leave);
      // Whether the target is this very thing cannot be told, so it is not dialled now.
      if (error) fail(new UpstreamError("connect", `the address of the registry's own ${hostname} is not known now`, error));
      else done(addresses);
    });
    if (signal.aborted) leave();
  });
}

function responseOf(
  endpoint: string,
  request: EgressRequest,
  incoming: IncomingMessage,
  signal: AbortSignal,
): EgressResponse {
  const header = (name: string) => {
    const value = incoming.headers[name];
    return Array.isArray(value) ? value[0] : value;
  };
  async function* chunks(limit: number): AsyncGenerator<Buffer> {
    const encoding = header("content-encoding");
    if (encoding !== undefined && encoding !== "identity") {
      incoming.destroy();
      throw new UpstreamError("protocol", `${place(endpoint)} sent ${encoding} although identity was asked for`);
    }
    let size = 0;
    try {
      for await (const chunk of incoming as AsyncIterable<Buffer>) {
        size += chunk.length;
        if (size > limit) {
          const text = `${place(endpoint)} answered ${request.purpose} with more than ${limit} bytes`;
          throw new UpstreamError("too-large", text);
        }
        yield chunk;
      }
    } catch (error) {
      throw translated(endpoint, request, signal, error as NodeJS.ErrnoException);
    } finally {
      incoming.destroy();
    }
  }
  // An answer that nobody reads may still fail later; that failure belongs to nobody.
  incoming.on("error", () => undefined);
  return {
    status: incoming.statusCode ?? 0,
    header,
    chunks,
    read: async (limit) => {
      const parts: Buffer[] = [];
      for await (const chunk of chunks(limit)) parts.push(chunk);
      return Buffer.concat(parts);
    },
    discard: () => void incoming.destroy(),
  };
}

function translated(
  endpoint: string,
  request: EgressRequest,
  signal: AbortSignal,
  error: NodeJS.ErrnoException,
): UpstreamError {
  if (error instanceof UpstreamError) return error;
  if (signal.aborted) return timedOut(endpoint, request.purpose, error);
  const where = place(endpoint);
  const code = error.code ?? error.name;
  if (code === "ECONNREFUSED")
    return new UpstreamError("connect", `${where} refuses connections; is the server up?`, error);
  if (code === "ECONNRESET" || code === "EPIPE") {
    return new UpstreamError(
      "connect",
      `${where} closed the connection before it had answered ${request.purpose}`,
      error,
    );
  }
  if (code === "HPE_HEADER_OVERFLOW") {
    return new UpstreamError(
      "too-large",
      `${where} answered ${request.purpose} with more than ${LIMITS.upstreamHeaderBytes} bytes of headers`,
      error,
    );
  }
  if (code.startsWith("HPE_"))
    return new UpstreamError("protocol", `${where} does not answer in HTTP (${code})`, error);
  return new UpstreamError("connect", `${where} cannot be reached (${code})`, error);
}
