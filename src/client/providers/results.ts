import type { JsonObject } from "./json.js";
import { isObject } from "./json.js";

/** What a tool answered: MCP's CallToolResult, or plain text. */
export type ToolResult =
  | string
  | {
      readonly content?: readonly unknown[];
      readonly structuredContent?: unknown;
      readonly isError?: boolean;
    };

/** One piece of a result, as every provider can be told about it. */
export type ResultPart =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "image"; readonly mimeType: string; readonly data: string };

/**
 * The pieces of a result in their order. What is neither text nor image (sound, a link to a resource, a binary resource) is
 * named in words. Structured content counts where there is no other.
 */
export function partsOf(result: ToolResult): ResultPart[] {
  if (typeof result === "string") return [{ kind: "text", text: result }];
  const parts = (result.content ?? []).map(partOf);
  if (parts.length === 0 && result.structuredContent !== undefined)
    return [{ kind: "text", text: JSON.stringify(result.structuredContent) }];
  return parts;
}

export function isFailure(result: ToolResult): boolean {
  return typeof result !== "string" && result.isError === true;
}

/** All of it as text; images are named. */
export function textOf(result: ToolResult): string {
  return partsOf(result)
    .map((part) => (part.kind === "text" ? part.text : named("image", part.mimeType, part.data)))
    .join("\n");
}

function partOf(block: unknown): ResultPart {
  if (!isObject(block)) return { kind: "text", text: JSON.stringify(block) ?? "" };
  const text = (words: string): ResultPart => ({ kind: "text", text: words });
  const { type, data } = block;
  const mimeType = typeof block["mimeType"] === "string" ? block["mimeType"] : "unknown type";
  if (type === "text" && typeof block["text"] === "string") return text(block["text"]);
  if (type === "image" && typeof data === "string") return { kind: "image", mimeType, data };
  if (type === "audio" && typeof data === "string") return text(named("sound", mimeType, data));
  if (type === "resource_link") return text(`[resource ${String(block["uri"])}]`);
  if (type === "resource" && isObject(block["resource"])) return resourcePart(block["resource"]);
  return text(JSON.stringify(block));
}

function resourcePart(resource: JsonObject): ResultPart {
  const { text, blob, uri } = resource;
  if (typeof text === "string") return { kind: "text", text };
  const mimeType = typeof resource["mimeType"] === "string" ? resource["mimeType"] : "unknown type";
  return { kind: "text", text: `${named("resource", mimeType, typeof blob === "string" ? blob : "")} ${String(uri)}` };
}

function named(what: string, mimeType: string, base64: string): string {
  return `[${what}, ${mimeType}, ${Math.floor((base64.length * 3) / 4)} bytes]`;
}
