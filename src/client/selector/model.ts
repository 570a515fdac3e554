/** A model behind an OpenAI-compatible endpoint, asked one question at a time. Nothing that it sends or is shown gets into an error. */

export interface ModelOptions {
  /** `https://host/v1`, or the whole URL of its `chat/completions`. */
  readonly endpoint: string;
  /** As the endpoint calls it. */
  readonly model: string;
  /** Shown as `authorization: Bearer …`; a function is asked at each call. None where the endpoint wants none. */
  readonly apiKey?: string | (() => string);
  /** Further fields of the request's body, such as `temperature`, `max_tokens` or `response_format`. */
  readonly body?: Readonly<Record<string, unknown>>;
  /** Bytes of an answer that are read; default 256 KiB. */
  readonly answerBytes?: number;
}

/** Why there is no answer: not reached in time, not reached at all, an HTTP status that is no answer, or an answer that is none. */
export type ModelFailure = "slow" | "unreachable" | "refused" | "broken";

/** A question that was not answered. Its message names the endpoint without its query, and no word of what was sent or received. */
export class ModelError extends Error {
  constructor(
    readonly kind: ModelFailure,
    message: string,
  ) {
    super(message);
    this.name = "ModelError";
  }
}

export interface Spoken {
  readonly text: string;
  /** As the endpoint counted them; estimated as bytes ÷ 4 where it does not say. */
  readonly promptTokens: number;
  readonly answerTokens: number;
}

export interface Question {
  readonly system: string;
  readonly user: string;
}

const ANSWER_BYTES = 256 * 1024;

export class ChatModel {
  readonly #url: URL;
  readonly #options: ModelOptions;

  /** Throws a TypeError that says what is wrong with the options, and shows no secret. */
  constructor(options: ModelOptions) {
    this.#url = chatUrl(options.endpoint);
    this.#options = options;
    if (options.model.trim() === "") throw new TypeError("the selector's model is empty: name it as its endpoint does");
    if (typeof options.apiKey === "string") headersFor(options.apiKey);
  }

  /** Rejects with ModelError; when `signal` aborts, with kind `slow`. */
  async ask(question: Question, signal: AbortSignal): Promise<Spoken> {
    const { model, apiKey, body: more, answerBytes = ANSWER_BYTES } = this.#options;
    const { system, user } = question;
    const messages = [
      { role: "system", content: system },
      { role: "user", content: user },
    ];
    const body = JSON.stringify({ model, messages, stream: false, ...more });
    const headers = this.#headers(apiKey);
    const text = await this.#exchange({ method: "POST", headers, body, signal, redirect: "manual" }, answerBytes, signal);
    return spokenIn(parse(text) ?? this.#fails("broken", "answered with what is no JSON"), question, () =>
      this.#fails("broken", "answered with JSON that holds no message of a model"),
    );
  }

  #headers(apiKey: ModelOptions["apiKey"]): Record<string, string> {
    try {
      return headersFor(typeof apiKey === "function" ? apiKey() : apiKey);
    } catch {
      // What went wrong may quote the key.
      this.#fails("refused", "was not asked: its key could not be read, or is none");
    }
  }

  async #exchange(init: RequestInit, mostBytes: number, signal: AbortSignal): Promise<string> {
    try {
      const response = await fetch(this.#url, init);
      // A redirect would take the key to somebody else.
      if (response.status !== 200) {
        await response.body?.cancel();
        this.#fails("refused", `answered with HTTP status ${response.status}`);
      }
      const text = await bounded(response, mostBytes);
      return text ?? this.#fails("broken", `answered with more than ${mostBytes} bytes, which is what is read of an answer`);
    } catch (error) {
      if (error instanceof ModelError) throw error;
      if (signal.aborted) this.#fails("slow", "did not answer in time");
      // What fetch says may quote a header; its system code is enough to go by.
      this.#fails("unreachable", `cannot be reached${codeOf(error)}`);
    }
  }

  #fails(kind: ModelFailure, what: string): never {
    throw new ModelError(kind, `the selector's model at ${this.#url.origin}${this.#url.pathname} ${what}`);
  }
}

function chatUrl(endpoint: string): URL {
  const url = URL.canParse(endpoint) ? new URL(endpoint) : undefined;
  if (!url || (url.protocol !== "http:" && url.protocol !== "https:"))
    throw new TypeError("the selector's endpoint is no http or https URL: give one such as https://host/v1");
  if (url.username !== "" || url.password !== "")
    throw new TypeError("the selector's endpoint holds a user name or password: give the key as apiKey, where no log shows it");
  const path = url.pathname.replace(/\/+$/, "");
  if (!path.endsWith("/chat/completions")) url.pathname = `${path === "" ? "/v1" : path}/chat/completions`;
  url.hash = "";
  return url;
}

function headersFor(apiKey: string | undefined): Record<string, string> {
  const headers = { "content-type": "application/json", accept: "application/json" };
  if (apiKey === undefined || apiKey === "") return headers;
  if (!/^[\x21-\x7e]+$/.test(apiKey)) throw new TypeError("the selector's apiKey holds what no key may: white space or other than ASCII");
  return { ...headers, authorization: `Bearer ${apiKey}` };
}

/** Undefined when there is more. */
async function bounded(response: Response, mostBytes: number): Promise<string | undefined> {
  if (!response.body) return "";
  const parts: Uint8Array[] = [];
  let size = 0;
  // Leaving the loop cancels the body, and with it the connection.
  for await (const part of response.body as unknown as AsyncIterable<Uint8Array>) {
    size += part.byteLength;
    if (size > mostBytes) return undefined;
    parts.push(part);
  }
  return Buffer.concat(parts).toString("utf8");
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function spokenIn(answer: unknown, { system, user }: Question, none: () => never): Spoken {
  const { choices, usage } = fieldsOf(answer);
  const { message } = fieldsOf(Array.isArray(choices) ? choices[0] : undefined);
  const text = textOf(fieldsOf(message)["content"]) ?? none();
  const { prompt_tokens: promptTokens, completion_tokens: answerTokens } = fieldsOf(usage);
  return {
    text,
    promptTokens: count(promptTokens) ?? estimated(system + user),
    answerTokens: count(answerTokens) ?? estimated(text),
  };
}

/** A text, or the texts of a list of parts. */
function textOf(content: unknown): string | undefined {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return undefined;
  return content.map((part: unknown) => fieldsOf(part)["text"]).filter((text) => typeof text === "string").join("");
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function count(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

/** Bytes ÷ 4: an estimate. */
export function estimated(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / 4);
}

function codeOf(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : undefined;
  const code = fieldsOf(cause)["code"];
  return typeof code === "string" && /^[A-Z0-9_]{1,40}$/.test(code) ? ` (${code})` : "";
}
