/** Which tools labels are proposed for, and what a model is told of each. */
import type { RegistryConnection } from "../../client/connection.js";
import { RegistryError } from "../../client/registry-error.js";
import { LIMITS } from "../../domain/limits.js";
import type { LabelTexts } from "../../domain/overlay.js";
import { type Overlay, Overlay_State } from "../../gen/toolcrib/v1/admin_service_pb.js";
import type { Stub } from "../../gen/toolcrib/v1/stub_pb.js";
import { CommandError } from "../io.js";
import type { Subject } from "./ask.js";

export interface Selection {
  readonly namespace: string;
  readonly serverIds: readonly string[];
  /** tool_ids; empty: all of the servers. */
  readonly only: readonly string[];
  /** Only tools that something is wrong with. */
  readonly warned: boolean;
  readonly most: number;
}

export interface Selected {
  readonly subjects: readonly Subject[];
  /** Tools without a definition to be had, with the reason. */
  readonly skipped: readonly string[];
  /** Tools beyond `most`. */
  readonly leftOut: number;
}

/** Definitions asked for at once, and how long their servers may take. */
const BATCH = 20;
const PATIENCE_MS = 15_000;

export async function selectSubjects(registry: RegistryConnection, selection: Selection): Promise<Selected> {
  const { namespace, serverIds, only, warned, most } = selection;
  const stubs = await stubsOf(registry, namespace, serverIds);
  const own = await ownTexts(registry, namespace, serverIds);
  const { tools: linted } = await registry.lintTools({ namespace, serverIds: [...serverIds], maxTools: LIMITS.lintTools });
  const warnings = new Map(linted.map((tool) => [tool.toolId, tool.warnings.map(({ message }) => message)]));
  const asked = new Set(only);
  const absent = only.filter((id) => !stubs.some(({ toolId }) => toolId === id));
  if (absent.length > 0) throw new CommandError(`${absent.join(", ")}: no such tool of ${serverIds.join(", ")}`);
  const wanted = stubs.filter(({ toolId }) => (asked.size === 0 || asked.has(toolId)) && (!warned || warnings.has(toolId)));
  const chosen = wanted.slice(0, most);
  const subjects: Subject[] = [];
  const skipped: string[] = [];
  for (let at = 0; at < chosen.length; at += BATCH) {
    const some = chosen.slice(at, at + BATCH);
    const definitions = await definitionsOf(registry, namespace, some.map(({ toolId }) => toolId));
    for (const [i, stub] of some.entries()) {
      const found = definitions[i];
      if (found?.kind !== "known") skipped.push(`${stub.toolId}: ${found?.why ?? "no definition"}`);
      else subjects.push(subjectOf(stub, own.get(stub.toolId), found, warnings.get(stub.toolId) ?? [], stubs));
    }
  }
  return { subjects, skipped, leftOut: wanted.length - chosen.length };
}

async function stubsOf(registry: RegistryConnection, namespace: string, serverIds: readonly string[]): Promise<Stub[]> {
  const stubs: Stub[] = [];
  let pageToken = "";
  do {
    const page = await registry.getStubs({ namespace, filter: { serverIds: [...serverIds] }, pageToken });
    stubs.push(...page.stubs);
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  if (stubs.length === 0) throw new CommandError(`no tools of ${serverIds.join(", ")} are registered`);
  return stubs;
}

/** tool_id → the registrant's own words, where an overlay hides them. Only operators see overlays; for others lists have to do. */
async function ownTexts(registry: RegistryConnection, namespace: string, serverIds: readonly string[]): Promise<ReadonlyMap<string, LabelTexts>> {
  try {
    const { overlays } = await registry.listOverlays({ namespace, serverIds: [...serverIds] });
    const shown = overlays.filter((overlay: Overlay) => overlay.state === Overlay_State.SHOWN && overlay.madeFor);
    return new Map(shown.map(({ toolId, madeFor }) => [toolId, textsOf(madeFor)]));
  } catch (error) {
    if (error instanceof RegistryError && error.reason === "FORBIDDEN") return new Map();
    throw error;
  }
}

type Definition = { readonly kind: "known"; readonly text: string; readonly digest: string } | { readonly kind: "unknown"; readonly why: string };

async function definitionsOf(registry: RegistryConnection, namespace: string, toolIds: string[]): Promise<Definition[]> {
  const { results } = await registry.batchGetFullSchemas({ namespace, toolIds }, { timeoutMs: PATIENCE_MS });
  return results.map(({ result }): Definition => {
    if (result.case === "schema") {
      const { definition, digest } = result.value;
      return { kind: "known", text: Buffer.from(definition).toString("utf8"), digest };
    }
    return { kind: "unknown", why: result.case === "error" ? result.value.message : "no definition" };
  });
}

function subjectOf(
  stub: Stub,
  own: LabelTexts | undefined,
  { text, digest }: Extract<Definition, { kind: "known" }>,
  warnings: readonly string[],
  all: readonly Stub[],
): Subject {
  const { toolId, serverId, name, title } = stub;
  const siblings = all.filter((other) => other.serverId === serverId && other.toolId !== toolId);
  return {
    toolId,
    name,
    title,
    own: own ?? textsOf(stub),
    digest,
    definition: text,
    warnings,
    siblings: siblings.map((other) => `${other.name}: ${other.briefDescription.slice(0, 80)}`),
  };
}

function textsOf(texts: LabelTexts | undefined): LabelTexts {
  return { briefDescription: texts?.briefDescription ?? "", keywords: [...(texts?.keywords ?? [])], useWhen: texts?.useWhen ?? "" };
}
