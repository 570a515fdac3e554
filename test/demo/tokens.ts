/** What texts cost in a prompt. */
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import type { ListedTool } from "./listings.js";

/** Special tokens in a description are text like any other. */
const AS_TEXT = { allowedSpecial: new Set<string>(), disallowedSpecial: new Set<string>() };

/** In o200k. */
export function tokensOf(text: string): number {
  return countTokens(text, AS_TEXT);
}

/** A tool as a client hands it to a model: name, description, parameters. What else a listing has never gets into a prompt. */
export function modelForm({ name, description = "", inputSchema }: ListedTool): string {
  return JSON.stringify({ name, description, parameters: inputSchema });
}

const counted = new Map<string, number>();

export function toolTokens(tools: readonly ListedTool[]): number {
  return tools.reduce((sum, tool) => {
    const text = modelForm(tool);
    const tokens = counted.get(text) ?? tokensOf(text);
    counted.set(text, tokens);
    return sum + tokens;
  }, 0);
}

export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

export const median = (values: readonly number[]): number => quantile(values, 0.5);
