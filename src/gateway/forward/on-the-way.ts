/** What a server says on the way to its answer, handed on in the caller's own words. */
import type { Logger, RpcMessage } from "../../upstream/caller.js";
import type { ForwardCall } from "./api.js";

type Json = Readonly<Record<string, unknown>>;

const META = "io.modelcontextprotocol/";
/** Said by each end of a connection for itself. */
const OF_THE_CONNECTION = [`${META}protocolVersion`, `${META}clientCapabilities`, `${META}clientInfo`];

export interface OnTheWay {
  /** What the server gets as `_meta`. */
  readonly meta: Json;
  readonly onMessage: (message: RpcMessage) => void;
  /** Whether the server said anything. */
  heard(): boolean;
}

/** `token` is asked of the server in place of the caller's: on a shared connection two callers may have chosen the same. */
export function onTheWay(call: ForwardCall, token: string, logger: Logger): OnTheWay {
  const { meta = {}, onProgress, onLog } = call;
  const { progressToken } = meta;
  const wanted = onProgress !== undefined && (typeof progressToken === "string" || typeof progressToken === "number");
  const passed = Object.entries(meta).filter(
    ([key]) => !OF_THE_CONNECTION.includes(key) && key !== "progressToken" && (key !== `${META}logLevel` || onLog !== undefined),
  );
  let heard = false;
  const tell = (hear: (params: Json) => void, params: Json): void => {
    try {
      hear(params);
    } catch (error) {
      logger.warn({ tool: call.toolId, err: error }, "what a server said on the way could not be handed on");
    }
  };
  return {
    meta: { ...Object.fromEntries(passed), ...(wanted && { progressToken: token }) },
    heard: () => heard,
    onMessage: ({ value: { method, params } }) => {
      if (!isObject(params)) return;
      const mine = method === "notifications/progress" && params["progressToken"] === token;
      heard ||= mine || method === "notifications/message";
      if (mine && wanted) tell(onProgress, { ...params, progressToken });
      else if (method === "notifications/message" && onLog) tell(onLog, params);
    },
  };
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
