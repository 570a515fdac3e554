/** A language model behind any OpenAI-compatible endpoint, asked for one JSON object at a time. */
import { readFileSync } from "node:fs";
import { CommandError } from "../io.js";

export interface ModelOptions {
  /** The base, such as `https://api.example.com/v1`; `/chat/completions` is put after it. */
  readonly url: string;
  readonly model: string;
  /** Sent as a bearer token and told to nobody else; empty: none. */
  readonly key: string;
  readonly timeoutMs: number;
}

/** The model could not be asked, or answered something else. The message holds neither key nor query nor answer. */
export class ModelError extends Error {
  override readonly name = "ModelError";
}

export interface Turn {
  readonly role: "system" | "user" | "assistant";
  readonly content: string;
}

/** Labels are short: a longer answer is none. */
const ANSWER_BYTES = 256 * 1024;
const ANSWER_TOKENS = 1_200;

export class Model {
  private readonly endpoint: URL;
  /** Some endpoints do not know it; they are asked without it from then on. */
  private jsonMode = true;

  constructor(private readonly options: ModelOptions) {
    this.endpoint = endpointOf(options);
  }

  /** The text that it answers. Rejects with ModelError, within the time-out. */
  async ask(turns: readonly Turn[], ending: AbortSignal): Promise<string> {
    const signal = AbortSignal.any([ending, AbortSignal.timeout(this.options.timeoutMs)]);
    let response = await this.send(turns, signal);
    if (response.status === 400 && this.jsonMode) {
      await response.body?.cancel();
      this.jsonMode = false;
      response = await this.send(turns, signal);
    }
    if (response.status !== 200) {
      await response.body?.cancel();
      throw new ModelError(`${this.place} answered with HTTP ${response.status}${HINTS[response.status] ?? ""}`);
    }
    return contentOf(await this.read(response), this.place);
  }

  private async send(turns: readonly Turn[], signal: AbortSignal): Promise<Response> {
    const { model, key } = this.options;
    const body = {
      model,
      messages: turns,
      temperature: 0,
      max_tokens: ANSWER_TOKENS,
      ...(this.jsonMode && { response_format: { type: "json_object" } }),
    };
    try {
      return await fetch(this.endpoint, {
        method: "POST",
        // A redirect would carry the key and the texts to a place that nobody named.
        redirect: "manual",
        headers: { "content-type": "application/json", accept: "application/json", ...(key !== "" && { authorization: `Bearer ${key}` }) },
        body: JSON.stringify(body),
        signal,
      });
    } catch (error) {
      throw this.failed(error, signal);
    }
  }

  private async read(response: Response): Promise<string> {
    const parts: Uint8Array[] = [];
    let bytes = 0;
    try {
      for await (const part of response.body ?? []) {
        bytes += part.byteLength;
        if (bytes > ANSWER_BYTES) break;
        parts.push(part);
      }
    } catch (error) {
      throw this.failed(error);
    }
    if (bytes > ANSWER_BYTES) throw new ModelError(`${this.place} answered with more than ${ANSWER_BYTES} bytes`);
    return Buffer.concat(parts).toString("utf8");
  }

  private failed(error: unknown, signal?: AbortSignal): ModelError {
    const timeout = [error, signal?.reason].some((e) => e instanceof Error && e.name === "TimeoutError");
    if (timeout) return new ModelError(`${this.place} did not answer within ${this.options.timeoutMs} ms`);
    // The cause may name the whole address, so only its code is told.
    const code = (error as { readonly cause?: { readonly code?: unknown } } | undefined)?.cause?.code;
    return new ModelError(`${this.place} cannot be reached${typeof code === "string" ? ` (${code})` : ""}`);
  }

  /** Without a query, where keys are often put. */
  private get place(): string {
    return `${this.endpoint.origin}${this.endpoint.pathname}`;
  }
}

const HINTS: Readonly<Record<number, string>> = {
  401: ": the key is missing or wrong",
  403: ": the key may not be used for this",
  404: ": is that the base of an OpenAI-compatible API, and does it know the model?",
  429: ": too many requests; try again later, or with --at-once 1",
};

function endpointOf({ url, key }: ModelOptions): URL {
  const base = url.replace(/\/+$/, "");
  const parsed = URL.canParse(base) ? new URL(base) : undefined;
  if (!parsed || !/^https?:$/.test(parsed.protocol))
    throw new CommandError("--url must be an http or https address, such as https://api.example.com/v1", 2);
  if (parsed.username !== "" || parsed.password !== "")
    throw new CommandError("--url must not hold a user or password: put the key into TOOLCRIB_MODEL_KEY", 2);
  if (key !== "" && parsed.protocol === "http:" && !isLoopbackHost(parsed.hostname))
    throw new CommandError("a key is sent over https only: name an https address in --url, or unset TOOLCRIB_MODEL_KEY", 2);
  if (!parsed.pathname.endsWith("/chat/completions")) parsed.pathname = `${parsed.pathname.replace(/\/+$/, "")}/chat/completions`;
  return parsed;
}

function isLoopbackHost(host: string): boolean {
  // URLs hold addresses in their canonical form.
  return host === "localhost" || /^127(?:\.\d{1,3}){3}$/.test(host) || host === "[::1]";
}

/** The text of the first choice. */
function contentOf(body: string, place: string): string {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch {
    throw new ModelError(`${place} answered with something else than JSON`);
  }
  const { choices } = (parsed ?? {}) as { readonly choices?: unknown };
  const first = (Array.isArray(choices) ? choices[0] : undefined) as { readonly message?: { readonly content?: unknown } } | undefined;
  const content = first?.message?.content;
  if (typeof content !== "string") throw new ModelError(`${place} answered without choices[0].message.content`);
  return content;
}

/** From TOOLCRIB_MODEL_KEY, else the file that TOOLCRIB_MODEL_KEY_FILE names; never from the command line, which others can read. */
export function modelKey(env: Readonly<Record<string, string | undefined>>): string {
  const given = env["TOOLCRIB_MODEL_KEY"]?.trim();
  if (given) return usableKey(given, "TOOLCRIB_MODEL_KEY");
  const path = env["TOOLCRIB_MODEL_KEY_FILE"];
  if (!path) return "";
  let text: string;
  try {
    text = readFileSync(path, "utf8").trim();
  } catch {
    throw new CommandError(`TOOLCRIB_MODEL_KEY_FILE names ${path}, which cannot be read`, 2);
  }
  return usableKey(text, `the file ${path}`);
}

function usableKey(key: string, where: string): string {
  if (!/^[\x21-\x7e]{1,4096}$/.test(key)) throw new CommandError(`${where} holds no key: it must be one line of visible ASCII characters`, 2);
  return key;
}
