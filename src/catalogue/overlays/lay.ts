import { bareTool, laidOver, misfitOf, type Overlay } from "../../domain/overlay.js";
import type { ServerRecord, Tool } from "../../domain/server.js";
import type { StubCodec } from "../ports.js";
import type { Overlays } from "./shelf.js";

/** The tool with this overlay, which must fit it. */
export function laid(tool: Tool, overlay: Overlay, stubs: StubCodec): Tool {
  const bare = bareTool(tool);
  const shown = overlay.trial ? bare.stub : stubs.encode(laidOver(stubs.decode(bare.stub), overlay), bare.digestDeclared).stub;
  return { ...bare, stub: shown, overlay: { overlay, own: bare.stub } };
}

/**
 * The next tools of a server, given as their registrant labels them, with the overlays that fit. A tool that is as it was keeps what
 * it has; the shelf is asked only where one is new or another one.
 */
export async function withOverlays(
  record: ServerRecord | undefined,
  next: readonly Tool[],
  stubs: StubCodec,
  shelf: () => Promise<Overlays>,
): Promise<readonly Tool[]> {
  const known = new Map((record?.tools ?? []).map((tool) => [tool.name, tool]));
  const settled = next.map((tool) => {
    const before = known.get(tool.name);
    return before && same(bareTool(before), bareTool(tool)) ? before : undefined;
  });
  if (settled.every((tool) => tool !== undefined)) return settled;
  const overlays = await shelf();
  return next.map((tool, i) => settled[i] ?? fitted(bareTool(tool), overlays.get(tool.name), stubs));
}

function fitted(bare: Tool, overlay: Overlay | undefined, stubs: StubCodec): Tool {
  return overlay && !misfitOf(stubs.decode(bare.stub), overlay) ? laid(bare, overlay, stubs) : bare;
}

function same(a: Tool, b: Tool): boolean {
  return a.digestDeclared === b.digestDeclared && Buffer.compare(a.stub, b.stub) === 0;
}
