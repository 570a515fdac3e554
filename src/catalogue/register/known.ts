import { bareTool } from "../../domain/overlay.js";
import type { ServerRecord, Tool } from "../../domain/server.js";
import type { StubFields } from "../../domain/stub.js";
import type { StubCodec } from "../ports.js";

/**
 * The tools, as their registrant labels them, with what the catalogue knows of them already. A digest that the registrant did not give was learned from a
 * load: it stays while what the registrant says about the tool stays, and is forgotten with the first change of its label.
 * The size belongs to the bytes kept under a digest, which are the first ones seen (P10), so it stays with the digest.
 */
export function withKnown(record: ServerRecord | undefined, tools: readonly Tool[], stubs: StubCodec): readonly Tool[] {
  if (!record) return tools;
  const known = new Map(record.tools.map((t) => [t.name, bareTool(t)]));
  return tools.map((tool) => {
    const before = known.get(tool.name);
    if (!before || before.digest === "") return tool;
    if (same(tool, before)) return before;
    if (tool.digest === before.digest) return withSize(tool, before, stubs);
    const learned = tool.digest === "" && !before.digestDeclared ? withFacts(tool, before, stubs) : undefined;
    return learned && same(learned, before) ? before : tool;
  });
}

function withSize(tool: Tool, before: Tool, stubs: StubCodec): Tool {
  const { sizeBytes } = stubs.decode(before.stub);
  if (sizeBytes === 0) return tool;
  const sized = stubs.encode({ ...stubs.decode(tool.stub), sizeBytes }, tool.digestDeclared);
  return same(sized, before) ? before : sized;
}

function withFacts(tool: Tool, before: Tool, stubs: StubCodec): Tool {
  const { digest, sizeBytes }: StubFields = stubs.decode(before.stub);
  return stubs.encode({ ...stubs.decode(tool.stub), digest, sizeBytes }, before.digestDeclared);
}

function same(a: Tool, b: Tool): boolean {
  return a.digestDeclared === b.digestDeclared && Buffer.compare(a.stub, b.stub) === 0;
}
