/** What is asked and answered about labels and whether they are shown: overlays, quarantine, and how well tools are described. */
import type { Overlay } from "../domain/overlay.js";
import type { QualityWarning, WarningKind } from "../domain/quality/warning.js";
import type { Position } from "../domain/revision.js";
import type { OverlayOutcome } from "./ports.js";

/** One overlay with what it does now. */
export interface OverlayView {
  readonly toolId: string;
  readonly overlay: Overlay;
  readonly version: string;
  readonly state: "shown" | "trial" | "inactive";
  /** For `inactive`, a sentence without its end. */
  readonly why: string;
  /** What came of calls since it was approved, by the label that agents were shown; unsaid where nobody counts. */
  readonly outcomes?: Omit<OverlayOutcome, "toolName" | "version">;
}

export interface ApproveOutput {
  readonly position: Position;
  /** Overlays that are new or other ones now. */
  readonly changed: number;
  readonly overlays: readonly OverlayView[];
}

export interface WithdrawInput {
  /** Empty = default. */
  readonly namespace: string;
  readonly serverId: string;
  /** Empty = all of the server's. */
  readonly toolNames: readonly string[];
}

export interface WithdrawOutput {
  /** Undefined where the server is not registered. */
  readonly position: Position | undefined;
  /** Whose overlay was taken away, in order. */
  readonly toolNames: readonly string[];
}

export interface OverlaysOutput {
  /** In tool_id order. */
  readonly overlays: readonly OverlayView[];
  readonly position: Position;
}

/** A tool that is withheld. */
export interface QuarantinedView {
  readonly toolId: string;
  readonly reason: string;
  /** Principal that quarantined it. */
  readonly by: string;
  /** ms since the epoch. */
  readonly sinceMs: number;
  /** What it has now; empty while unknown. */
  readonly digest: string;
  /** The approved one, where that is another; empty where none was approved. */
  readonly approvedDigest: string;
}

export interface QuarantineOutput {
  readonly position: Position;
  readonly tool: QuarantinedView;
  /** Whether it was listed before. */
  readonly withheld: boolean;
}

export interface ApproveToolOutput {
  readonly position: Position;
  /** Whether it was withheld before and is listed now. */
  readonly released: boolean;
  /** The tool while it is withheld still. */
  readonly tool: QuarantinedView | undefined;
  /** Empty where the tool is under no quarantine. */
  readonly approvedDigest: string;
}

export interface LintQuery {
  /** Empty = default. */
  readonly namespace: string;
  /** Empty = all. */
  readonly serverIds: readonly string[];
  readonly maxTools: number;
  readonly minRevision: string;
}

export interface LintedTool {
  readonly toolId: string;
  /** At least one, the gravest first. */
  readonly warnings: readonly QualityWarning[];
  /** False: its parameters were not judged. */
  readonly definitionKnown: boolean;
}

/** `counts`, `all`, `warned` and `unknown` are of all tools asked for. */
export interface LintOutput {
  /** The gravest first, then by tool_id. */
  readonly tools: readonly LintedTool[];
  readonly counts: ReadonlyMap<WarningKind, number>;
  readonly all: number;
  readonly warned: number;
  readonly unknown: number;
  readonly position: Position;
  readonly stale: boolean;
}
