/** What FindTools reckons with beside words. */
import { PATH, type Setting, type TextRule } from "../setting.js";

export const ENDPOINT: TextRule = {
  pattern: /^https?:\/\/(?![^/]*@)[^\0\s?#]{1,2000}$/,
  expected: "an http or https URL without user information, query or fragment, as https://api.example.com/v1",
  placeholder: "url",
};
export const MODEL: TextRule = { pattern: /^[\x21-\x7e]{1,200}$/, expected: "1 to 200 characters of visible ASCII", placeholder: "name" };

export const GATE: readonly Setting[] = [
  {
    name: "embedder",
    flag: "--embedder",
    variable: "TOOLCRIB_EMBEDDER",
    fallback: "",
    kind: { kind: "optional", rule: ENDPOINT },
    help: "Base URL of an OpenAI-compatible endpoint (`/embeddings` is put after it) that lets FindTools go by meaning, too; needs a model.",
  },
  {
    name: "embedderModel",
    flag: "--embedder-model",
    variable: "TOOLCRIB_EMBEDDER_MODEL",
    fallback: "",
    kind: { kind: "optional", rule: MODEL },
    help: "Model that the embedder is asked for; vectors are kept apart by it.",
  },
  {
    name: "embedderKeyFile",
    flag: "--embedder-key-file",
    variable: "TOOLCRIB_EMBEDDER_KEY_FILE",
    fallback: "",
    kind: { kind: "optional", rule: PATH },
    help: "File of the embedder's API key, sent as a bearer token; read again when it changes.",
  },
  {
    name: "embedderBudget",
    flag: "--embedder-budget",
    variable: "TOOLCRIB_EMBEDDER_BUDGET",
    fallback: "150",
    kind: { kind: "integer", min: 1, max: 10_000 },
    help: "Milliseconds that an answer waits for the vector of its intent; then it is by words, and says so.",
  },
];
