/**
 * The official SDK's servers, recognised by their shape: McpServer and low-level Server of `@modelcontextprotocol/sdk` 1
 * and `@modelcontextprotocol/server` 2. Nothing of either SDK is imported.
 *
 * The list is read by calling the server's own `tools/list` handler in process. A second, in-memory transport would be the
 * public way, but a v1 server refuses it while it is connected, and a v2 server would forget its client.
 */

/** A list of tools without an end in sight is a bug of the server's handler. */
const MAX_PAGES = 500;

type Handler = (request: unknown, context: unknown) => unknown;

interface LowLevelServer {
  readonly _requestHandlers: ReadonlyMap<string, Handler>;
  readonly transport?: unknown;
  notification?: (notification: { method: string }, ...rest: unknown[]) => unknown;
  buildContext?: (base: unknown, extra: unknown) => unknown;
  _wireCodec?: () => { encodeResult?: (method: string, result: unknown) => unknown };
}

interface HighLevelServer {
  readonly server: LowLevelServer;
  sendToolListChanged?: (...args: unknown[]) => unknown;
}

/** The tool list of a server in this process. */
export interface SdkServer {
  /** The definitions as the server would put them on the wire, in its order. */
  list(): Promise<Uint8Array[]>;
  /** Calls back on every change of the list that the server announces; returns how to stop. */
  onChange(run: () => void): () => void;
}

/** Throws a TypeError when the object is not one of the SDK's servers. */
export function sdkServer(server: object): SdkServer {
  const high = isHighLevel(server) ? server : undefined;
  const low = high?.server ?? (isLowLevel(server) ? server : undefined);
  if (!low) {
    throw new TypeError(
      "registerServer needs an McpServer or Server of @modelcontextprotocol/sdk 1.x or @modelcontextprotocol/server 2.x; this object has no request handlers",
    );
  }
  return { list: () => listTools(low), onChange: (run) => hookChanges(high, low, run) };
}

function isLowLevel(value: unknown): value is LowLevelServer {
  return (value as Partial<LowLevelServer> | undefined)?._requestHandlers instanceof Map;
}

function isHighLevel(value: object): value is HighLevelServer {
  return isLowLevel((value as Partial<HighLevelServer>).server);
}

async function listTools(low: LowLevelServer): Promise<Uint8Array[]> {
  const handler = low._requestHandlers.get("tools/list");
  if (!handler) return []; // The SDK installs the handler with the first tool.
  const tools: Uint8Array[] = [];
  const seen = new Set<string>();
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page++) {
    const result = asWritten(low, await handler(listRequest(cursor), contextFor(low)));
    for (const tool of result.tools) tools.push(Buffer.from(JSON.stringify(tool) ?? "null"));
    if (typeof result.nextCursor !== "string") return tools;
    if (seen.has(result.nextCursor)) throw new Error("tools/list answered the same cursor twice");
    seen.add(result.nextCursor);
    cursor = result.nextCursor;
  }
  throw new Error(`tools/list did not end after ${MAX_PAGES} pages`);
}

function listRequest(cursor: string | undefined): object {
  return { jsonrpc: "2.0", id: 0, method: "tools/list", params: cursor === undefined ? {} : { cursor } };
}

interface ListResult {
  readonly tools: readonly unknown[];
  readonly nextCursor?: unknown;
}

/** A connected v2 server rewrites some lists for older clients; a server made for one request at a time does not. */
function asWritten(low: LowLevelServer, result: unknown): ListResult {
  const encode = low.transport === undefined ? undefined : low._wireCodec?.();
  const written = (encode?.encodeResult?.("tools/list", result) ?? result) as Partial<ListResult> | null | undefined;
  if (!Array.isArray(written?.tools)) throw new Error("tools/list answered no array of tools");
  return written as ListResult;
}

/** What handlers of both SDKs may look at when nobody is connected. */
function contextFor(low: LowLevelServer): unknown {
  const { signal } = new AbortController();
  const nobody = (): Promise<never> => Promise.reject(new Error("no client is connected to this listing"));
  const silent = (): Promise<void> => Promise.resolve();
  const mcpReq = { id: 0, method: "tools/list", signal, send: nobody, notify: silent, requestState: () => undefined };
  const context = { signal, requestId: 0, sendRequest: nobody, sendNotification: silent, mcpReq };
  const built = low.buildContext?.(context, undefined);
  return built && typeof built === "object" ? { ...context, ...built } : context;
}

/**
 * McpServer announces every change through its own `sendToolListChanged`, also while nobody is connected; users of the
 * low-level server send the notification themselves.
 */
function hookChanges(high: HighLevelServer | undefined, low: LowLevelServer, run: () => void): () => void {
  const undo: (() => void)[] = [];
  if (high?.sendToolListChanged) undo.push(wrapMethod(high, "sendToolListChanged", () => run()));
  if (low.notification) {
    undo.push(
      wrapMethod(low, "notification", (first) => {
        if ((first as { method?: unknown } | undefined)?.method === "notifications/tools/list_changed") run();
      }),
    );
  }
  return () => {
    for (const restore of undo) restore();
  };
}

function wrapMethod<T extends object, K extends keyof T>(
  owner: T,
  name: K,
  before: (first: unknown) => void,
): () => void {
  const own = Object.getOwnPropertyDescriptor(owner, name);
  const original = owner[name] as unknown as (...args: unknown[]) => unknown;
  const wrapped = function (this: unknown, ...args: unknown[]): unknown {
    before(args[0]);
    return original.apply(this, args);
  };
  Object.defineProperty(owner, name, { value: wrapped, configurable: true, writable: true, enumerable: false });
  return () => {
    // Somebody may have wrapped it after us: then ours has to stay, and has become harmless.
    if ((owner[name] as unknown) !== wrapped) return;
    if (own) Object.defineProperty(owner, name, own);
    else delete owner[name];
  };
}
