/** Counts the tokens of a text. */
export interface Tokenizer {
  /** What the numbers are: the encoding, or how they were estimated. */
  readonly name: string;
  count(text: string): number;
}

/** An estimate, for whoever has no tokenizer: bytes of UTF-8 divided by 4. */
export const BYTES_OVER_4: Tokenizer = {
  name: "bytes/4",
  count: (text) => Math.ceil(Buffer.byteLength(text) / 4),
};

/** Encodings of `gpt-tokenizer`. */
export type GptEncoding = "o200k_base" | "cl100k_base" | "o200k_harmony";

interface GptTokenizer {
  countTokens(text: string, options: { readonly allowedSpecial: Set<string>; readonly disallowedSpecial: Set<string> }): number;
}

/** Special tokens in a tool's description are text like any other. */
const AS_TEXT = { allowedSpecial: new Set<string>(), disallowedSpecial: new Set<string>() };

/**
 * The tokenizer of `gpt-tokenizer`, an optional peer that takes some tenths of a second to load; where it is not installed, bytes
 * divided by 4. The answer's `name` says which it is.
 */
export async function gptTokenizer(encoding: GptEncoding = "o200k_base"): Promise<Tokenizer> {
  // The peer may be missing, also where this is compiled.
  const peer = `gpt-tokenizer/encoding/${encoding}`;
  try {
    const module = (await import(peer)) as GptTokenizer;
    return { name: encoding, count: (text) => module.countTokens(text, AS_TEXT) };
  } catch (error) {
    if (isMissing(error)) return BYTES_OVER_4;
    throw error;
  }
}

function isMissing(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === "ERR_MODULE_NOT_FOUND" || code === "MODULE_NOT_FOUND";
}
