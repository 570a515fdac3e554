/** `toolcrib enhance report`: whether calls go better with the new labels than with the old ones. */
import { toJson } from "@bufbuild/protobuf";
import { Command } from "commander";
import { ListOverlaysResponseSchema, type Outcomes, type Overlay, Overlay_State } from "../../gen/toolcrib/v1/admin_service_pb.js";
import type { Io } from "../io.js";
import { line } from "../io.js";
import { type RegistryOptions, withConnection, withJson, withRegistry } from "../options.js";
import { formatTable } from "../table.js";

export function reportCommand(io: Io): Command {
  const command = new Command("report")
    .description("how calls went with the new labels and, in a trial, with the old ones")
    .argument("[server_id...]", "only of these");
  return withJson(withRegistry(command)).action((serverIds: string[], options: RegistryOptions & { json?: boolean }) =>
    withConnection(options, async (registry, namespace) => {
      const answer = await registry.listOverlays({ namespace, serverIds });
      if (options.json) return line(io.stdout, JSON.stringify(toJson(ListOverlaysResponseSchema, answer), null, 2));
      for (const text of reportLines(answer.overlays)) line(io.stdout, text);
    }),
  );
}

/** Below this many calls on either side a difference says nothing. */
const ENOUGH = 30;
/** Standard errors by which two rates have to differ: one in twenty trials of equal labels does so by chance. */
const CLEAR = 1.96;

export function reportLines(overlays: readonly Overlay[]): string[] {
  if (overlays.length === 0) return ["No overlays."];
  const rows = overlays.map(({ toolId, version, state, withOverlay, withOwn }) => {
    const [after, before] = [countsOf(withOverlay), countsOf(withOwn)];
    return [toolId, version, state === Overlay_State.TRIAL ? "trial" : state === Overlay_State.SHOWN ? "shown" : "inactive", rate(before), rate(after), verdict(before, after)];
  });
  return formatTable([{ head: "TOOL", shrink: true }, { head: "VERSION" }, { head: "STATE" }, { head: "OLD LABEL" }, { head: "NEW LABEL" }, { head: "SO FAR" }], rows);
}

interface Counts {
  readonly good: number;
  readonly all: number;
}

function countsOf(outcomes: Outcomes | undefined): Counts {
  const good = Number(outcomes?.successes ?? 0n);
  return { good, all: good + Number(outcomes?.failures ?? 0n) };
}

function rate({ good, all }: Counts): string {
  return all === 0 ? "–" : `${good} of ${all} (${Math.round((100 * good) / all)} %)`;
}

export function verdict(before: Counts, after: Counts): string {
  if (before.all < ENOUGH || after.all < ENOUGH) return "too few calls to tell";
  const pooled = (before.good + after.good) / (before.all + after.all);
  const error = Math.sqrt(pooled * (1 - pooled) * (1 / before.all + 1 / after.all));
  const difference = after.good / after.all - before.good / before.all;
  if (error === 0 || Math.abs(difference) < CLEAR * error) return "no clear difference";
  return difference > 0 ? "the new one is better" : "the old one is better";
}
