import { createHash } from "node:crypto";
import { compareText } from "../../domain/ids.js";
import { judgeDefinition } from "../../domain/quality/definition.js";
import { duplicateWarning, judgeLabel, textKeyOf } from "../../domain/quality/label.js";
import { gathered, gravityOf, type QualityWarning, WARNING_KINDS, type WarningKind } from "../../domain/quality/warning.js";
import type { StubFields } from "../../domain/stub.js";

interface Judged {
  readonly serverId: string;
  readonly name: string;
  readonly digest: string;
  /** Of its text; empty where it has none. */
  readonly textHash: string;
  readonly label: readonly QualityWarning[];
  /** Undefined while the definition under this digest is not known. */
  readonly definition: readonly QualityWarning[] | undefined;
}

/** Tools with the same text. */
interface Alike {
  readonly ids: Set<string>;
  /** Name → how many have it. */
  readonly names: Map<string, number>;
}

export interface Wanting {
  readonly toolId: string;
  readonly warnings: readonly QualityWarning[];
  readonly definitionKnown: boolean;
}

/** What there is to mend in one namespace, counted as its tools come and go. */
export class QualityTally {
  readonly counts = new Map<WarningKind, number>(WARNING_KINDS.map((kind) => [kind, 0]));
  private readonly tools = new Map<string, Judged>();
  private readonly alike = new Map<string, Alike>();

  get size(): number {
    return this.tools.size;
  }

  ids(): Iterable<string> {
    return this.tools.keys();
  }

  /** The tool as its registrant labels it; what is known of its definition stays while the digest does. */
  put(toolId: string, label: StubFields, definition?: Uint8Array): void {
    const before = this.tools.get(toolId);
    const known = before?.digest === label.digest ? before.definition : undefined;
    const key = textKeyOf(label);
    this.remove(toolId);
    const judged: Judged = {
      serverId: label.serverId,
      name: label.name,
      digest: label.digest,
      textHash: key === "" ? "" : createHash("sha256").update(key).digest("base64").slice(0, 22),
      label: judgeLabel(label),
      definition: definition ? judgeDefinition(definition) : known,
    };
    this.tools.set(toolId, judged);
    this.count(judged, 1);
    this.join(toolId, judged);
  }

  remove(toolId: string): void {
    const judged = this.tools.get(toolId);
    if (!judged) return;
    this.tools.delete(toolId);
    this.count(judged, -1);
    this.leave(toolId, judged);
  }

  /** The gravest first, and what all together have. */
  worst(accept: (serverId: string) => boolean, most: number) {
    const counts = new Map<WarningKind, number>();
    const wanting: { toolId: string; judged: Judged; gravity: number }[] = [];
    let all = 0;
    let unknown = 0;
    for (const [toolId, judged] of this.tools) {
      if (!accept(judged.serverId)) continue;
      all++;
      if (!judged.definition) unknown++;
      const found = this.warningsOf(judged, SOME_OTHER);
      for (const { kind } of found) counts.set(kind, (counts.get(kind) ?? 0) + 1);
      if (found.length > 0) wanting.push({ toolId, judged, gravity: gravityOf(found) });
    }
    wanting.sort((a, b) => b.gravity - a.gravity || compareText(a.toolId, b.toolId));
    const tools = wanting.slice(0, most).map(({ toolId, judged }): Wanting => {
      const warnings = this.warningsOf(judged, duplicateWarning(this.othersThan(toolId, judged)));
      return { toolId, warnings, definitionKnown: judged.definition !== undefined };
    });
    return { tools, counts, all, warned: wanting.length, unknown };
  }

  private warningsOf(judged: Judged, duplicate: QualityWarning): readonly QualityWarning[] {
    const same = isDuplicate(this.alike.get(judged.textHash)) ? [duplicate] : [];
    return gathered(judged.label, same, judged.definition ?? []);
  }

  /** Those with another name first: they are what nobody can choose between. */
  private othersThan(toolId: string, { name, textHash }: Judged): string[] {
    const others = [...(this.alike.get(textHash)?.ids ?? [])].filter((id) => id !== toolId);
    const named = (id: string): number => (this.tools.get(id)?.name === name ? 1 : 0);
    return others.sort((a, b) => named(a) - named(b) || compareText(a, b));
  }

  private count(judged: Judged, sign: 1 | -1): void {
    for (const { kind } of gathered(judged.label, judged.definition ?? [])) this.add(kind, sign);
  }

  private add(kind: WarningKind, by: number): void {
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + by);
  }

  private join(toolId: string, { name, textHash }: Judged): void {
    if (textHash === "") return;
    const group: Alike = this.alike.get(textHash) ?? { ids: new Set(), names: new Map() };
    this.alike.set(textHash, group);
    this.regroup(group, () => {
      group.ids.add(toolId);
      group.names.set(name, (group.names.get(name) ?? 0) + 1);
    });
  }

  private leave(toolId: string, { name, textHash }: Judged): void {
    const group = this.alike.get(textHash);
    if (!group) return;
    this.regroup(group, () => {
      group.ids.delete(toolId);
      const left = (group.names.get(name) ?? 0) - 1;
      if (left > 0) group.names.set(name, left);
      else group.names.delete(name);
    });
    if (group.ids.size === 0) this.alike.delete(textHash);
  }

  private regroup(group: Alike, change: () => void): void {
    const before = isDuplicate(group) ? group.ids.size : 0;
    change();
    const after = isDuplicate(group) ? group.ids.size : 0;
    this.add("duplicate-text", after - before);
  }
}

/** One name with one text on many servers is one tool offered many times: no text can tell those apart, and none has to. */
function isDuplicate(group: Alike | undefined): boolean {
  return group !== undefined && group.names.size > 1;
}

const SOME_OTHER: QualityWarning = { kind: "duplicate-text", message: "" };
