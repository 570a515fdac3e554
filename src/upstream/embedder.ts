/** An OpenAI-compatible `/embeddings` endpoint, dialled over the one way out. */
import { EmbedderError } from "../gate/dense/embedder.js";
import type { Egress, EgressResponse } from "./egress.js";
import { place } from "./failures.js";

export interface EmbeddingsEndpoint {
  /** The base, `https://…/v1`; `/embeddings` is put after it. */
  readonly url: string;
  readonly model: string;
  /** Sent as a bearer token; empty: none. */
  readonly key: string;
}

/** A vector of 8,192 numbers as JSON, and what stands around the vectors. */
const VECTOR_BYTES = 200 * 1024;
const AROUND_BYTES = 64 * 1024;

/** Answers vectors in the order of the texts. Rejects with EmbedderError, which holds neither key nor answer. */
export async function embed(
  egress: Egress,
  { url, model, key }: EmbeddingsEndpoint,
  texts: readonly string[],
  signal: AbortSignal,
): Promise<readonly ArrayLike<number>[]> {
  const endpoint = `${url.replace(/\/+$/, "")}/embeddings`;
  try {
    const response = await egress.request(
      endpoint,
      {
        method: "POST",
        headers: {
          "content-type": "application/json",
          accept: "application/json",
          ...(key === "" ? {} : { authorization: `Bearer ${key}` }),
        },
        body: JSON.stringify({ model, input: texts, encoding_format: "float" }),
        purpose: "the request for vectors",
        ...(key === "" ? {} : { secret: true as const }),
      },
      signal,
    );
    if (response.status !== 200) throw refusalOf(endpoint, response);
    return vectorsIn(await response.read(AROUND_BYTES + texts.length * VECTOR_BYTES), texts.length, endpoint);
  } catch (error) {
    if (error instanceof EmbedderError) throw error;
    throw new EmbedderError(error instanceof Error ? error.message : String(error), "away", { cause: error });
  }
}

/** A wrong key or model is an operator's to mend, and no fault of the texts: only these are refused for good. */
const REFUSED_TEXTS = new Set([400, 413, 422]);

function refusalOf(endpoint: string, response: EgressResponse): EmbedderError {
  response.discard();
  const moved = response.status >= 300 && response.status < 400 ? ", and redirects are not followed" : "";
  const message = `${place(endpoint)} answered the request for vectors with HTTP ${response.status}${moved}`;
  return new EmbedderError(message, REFUSED_TEXTS.has(response.status) ? "refused" : "away");
}

function vectorsIn(body: Buffer, count: number, endpoint: string): readonly ArrayLike<number>[] {
  const broken = (what: string) => new EmbedderError(`${place(endpoint)} answered with something else than vectors: ${what}`, "away");
  let parsed: unknown;
  try {
    parsed = JSON.parse(body.toString("utf8"));
  } catch {
    throw broken("no JSON");
  }
  const data = (parsed as { data?: unknown } | null)?.data;
  if (!Array.isArray(data) || data.length !== count) throw broken(`data is no list of ${count}`);
  const vectors = new Array<ArrayLike<number> | undefined>(count).fill(undefined);
  for (const [i, item] of data.entries()) {
    const { index = i, embedding } = (item ?? {}) as { index?: unknown; embedding?: unknown };
    if (!Array.isArray(embedding) || typeof index !== "number" || !(index in vectors)) throw broken(`data[${i}] is none`);
    vectors[index] = embedding.map((value) => (typeof value === "number" ? value : Number.NaN));
  }
  if (vectors.includes(undefined)) throw broken("an index stands twice");
  return vectors as ArrayLike<number>[];
}
