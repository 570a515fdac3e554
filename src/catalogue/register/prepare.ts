import { Fault, type Violation } from "../../domain/fault.js";
import { judgeSet } from "../../domain/quality/set.js";
import { LIMITS } from "../../domain/limits.js";
import type { Condition, Instance, ServerRecord, Tool, ToolSource } from "../../domain/server.js";
import type { DeclaredTool, RegisterInput, ToolOutcome } from "../api.js";
import type { Deps } from "../deps.js";
import type { Blob } from "../ports.js";
import { FAILURE_WORDS } from "../failure-words.js";
import { type CredentialUse, type Dial, dialOf, type Listing, sameDial, UpstreamError } from "../upstream-port.js";
import { type DeclaredSet, outcomesOf, readDeclared } from "./declared.js";
import { instanceIdOf, type OfferPart, withCondition } from "./header.js";
import { withKnown } from "./known.js";
import { listedSet } from "./listed.js";

/** An offer, judged before the write loop begins, so that deciding again costs no network and no parsing. */
export interface PreparedOffer {
  readonly source: ToolSource;
  readonly blobs: readonly Blob[];
  tools(record: ServerRecord | undefined): readonly Tool[];
  header(record: ServerRecord | undefined, nowMs: number): OfferPart;
  outcomes(record: ServerRecord | undefined, tools: readonly Tool[]): readonly ToolOutcome[];
}

/** How long a Register of a new server waits for its first listing; one that takes longer is registered as pending. */
const FIRST_LISTING_MS = 5_000;

export async function prepareOffer(
  deps: Deps,
  namespace: string,
  input: RegisterInput,
  known: ServerRecord | undefined,
): Promise<PreparedOffer> {
  const dial = dialOf(namespace, input);
  const { endpoint, transport, credential } = dial;
  if (credential) refuseCredential(deps, input, credential);
  if (input.offer.kind === "declared") return declaredOffer(deps, input, input.offer.tools);
  refuseEgress(deps, input);
  const before = known && instanceBefore(known, input);
  const moved = before && !sameDial(dialOf(namespace, { ...before, endpoint, transport }), dial);
  if (known?.header.source === "introspected" && !known.header.pending && !moved) return knownOffer();
  const first = await firstListing(deps, dial);
  // A name shows only now where it leads; a server that may not be dialled will not come up by waiting.
  if (first.kind === "failed" && first.error.kind === "egress") throw egressDenied(input, first.error.message);
  if (first.kind === "failed" && first.error.kind === "credential") throw unknownCredential(input, first.error.message);
  return introspectedOffer(deps, input, first, before?.sharePrivate === true && !input.sharePrivate);
}

function declaredOffer(deps: Deps, input: RegisterInput, declared: readonly DeclaredTool[]): PreparedOffer {
  if (declared.some((t) => t.definition === undefined)) refuseEgress(deps, input);
  const set = readDeclared(input.serverId, input.tags, declared, deps.stubs, deps.now());
  refuseRejected(input, set);
  const warnings = judgedOnce(input.serverId, () => judgeable(set.tools, set.blobs, deps));
  return {
    source: "declared",
    blobs: set.blobs,
    tools: (record) => withKnown(record, set.tools, deps.stubs),
    header: () => ({
      setDigest: set.setDigest,
      rejected: set.rejected,
      rejectedCount: set.rejectedCount,
      pending: false,
      conditions: [],
      availability: "available",
      protocolVersion: "",
      listedAtMs: 0,
    }),
    outcomes: (record, tools) => warned(outcomesOf(set, tools, record), warnings()),
  };
}

/** An introspected server that was listed before keeps its last good set; the keeper lists it again. */
function knownOffer(): PreparedOffer {
  return {
    source: "introspected",
    blobs: [],
    tools: (record) => record?.tools ?? [],
    header: (record) => ({
      setDigest: "",
      rejected: record?.header.rejected ?? [],
      rejectedCount: record?.header.rejectedCount ?? 0,
      pending: record?.header.pending ?? true,
      conditions: record?.header.conditions ?? [],
      availability: record?.header.availability ?? "unavailable",
      protocolVersion: record?.header.protocolVersion ?? "",
      listedAtMs: record?.header.listedAtMs ?? 0,
    }),
    outcomes: (record) =>
      (record?.tools ?? []).map((t) => ({ name: t.name, outcome: "unchanged", reasons: [], digest: t.digest })),
  };
}

type Warnings = ReturnType<typeof judgeSet>;

/** A Register may be decided several times, and what it says of its tools is judged once. */
function judgedOnce(serverId: string, tools: () => Parameters<typeof judgeSet>[1]): () => Warnings {
  let judged: Warnings | undefined;
  return () => (judged ??= judgeSet(serverId, tools()));
}

function judgeable(tools: readonly Tool[], blobs: readonly Blob[], deps: Deps) {
  const definitions = new Map(blobs.map(({ digest, bytes }) => [digest, bytes]));
  return tools.map(({ stub, digest }) => ({ label: deps.stubs.decode(stub), definition: definitions.get(digest) }));
}

function warned(outcomes: readonly ToolOutcome[], warnings: Warnings): readonly ToolOutcome[] {
  return outcomes.map((outcome) => {
    const found = outcome.outcome === "rejected" ? undefined : warnings.get(outcome.name);
    return found ? { ...outcome, warnings: found } : outcome;
  });
}

type FirstListing =
  | { readonly kind: "listed"; readonly listing: Listing }
  | { readonly kind: "failed"; readonly error: UpstreamError };

/** `sharingEnds`: what was listed until now may be private, and must not outlive a failed listing. */
function introspectedOffer(deps: Deps, input: RegisterInput, first: FirstListing, sharingEnds: boolean): PreparedOffer {
  if (first.kind === "failed" || first.listing.tools.length + first.listing.rejected.length === 0)
    return pendingOffer(first, sharingEnds);
  const { listing } = first;
  const set = listedSet(input.serverId, input.tags, listing, deps.stubs);
  const warnings = judgedOnce(input.serverId, () => judgeable(set.tools, set.blobs, deps));
  return {
    source: "introspected",
    blobs: set.blobs,
    tools: (record) => withKnown(record, set.tools, deps.stubs),
    header: (record, nowMs) => ({
      setDigest: "",
      rejected: set.rejected,
      rejectedCount: set.rejectedCount,
      pending: false,
      conditions: answered(record, nowMs),
      availability: "available",
      protocolVersion: listing.protocolVersion,
      listedAtMs: listing.receivedAtMs,
    }),
    outcomes: (record, tools) => {
      const before = new Map((record?.tools ?? []).map((t) => [t.name, t.digest]));
      const listed = tools.map((t): ToolOutcome => {
        return {
          name: t.name,
          outcome: before.get(t.name) === t.digest ? "unchanged" : "accepted",
          reasons: [],
          digest: t.digest,
        };
      });
      const rejected = set.rejected.map((r): ToolOutcome => ({ ...r, outcome: "rejected", digest: "" }));
      return [...warned(listed, warnings()), ...rejected];
    },
  };
}

/** A server that does not answer yet, or answers with nothing: committed without tools, listed when it comes up. */
function pendingOffer(first: FirstListing, sharingEnds: boolean): PreparedOffer {
  const failed = first.kind === "failed" ? first.error : undefined;
  const words = failed && FAILURE_WORDS[failed.kind];
  return {
    source: "introspected",
    blobs: [],
    // An update to a bad endpoint keeps the last good set.
    tools: (record) => (sharingEnds ? [] : (record?.tools ?? [])),
    header: (record, nowMs) => ({
      setDigest: "",
      rejected: [],
      rejectedCount: 0,
      pending: true,
      conditions: [
        {
          type: "Listed",
          status: "false",
          reason: words?.reason ?? "EMPTY_LIST",
          message: failed?.message ?? "the server answered an empty list; it is asked again before that is believed",
          sinceMs: nowMs,
        },
        {
          type: "Reachable",
          status: words?.reachable === false ? "false" : "true",
          reason: words?.reason ?? "ANSWERED",
          message: failed?.message ?? "",
          sinceMs: nowMs,
        },
      ],
      availability: words?.reachable === false ? "unavailable" : "available",
      protocolVersion: record?.header.protocolVersion ?? "",
      listedAtMs: record?.header.listedAtMs ?? 0,
    }),
    outcomes: () => [],
  };
}

/** The conditions of a server that just answered a listing. */
export function answered(record: ServerRecord | undefined, nowMs: number) {
  const before = record?.header.conditions ?? [];
  const reachable = withCondition(before, {
    type: "Reachable",
    status: "true",
    reason: "ANSWERED",
    message: "",
    sinceMs: nowMs,
  });
  return nowListed(reachable, nowMs);
}

export function nowListed(conditions: readonly Condition[], nowMs: number): readonly Condition[] {
  return withCondition(conditions, { type: "Listed", status: "true", reason: "LISTED", message: "", sinceMs: nowMs });
}

/** The instance that this Register updates, or else the one whose set it replaces. */
function instanceBefore({ header }: ServerRecord, input: RegisterInput): Instance | undefined {
  return header.instances.find((i) => i.instanceId === instanceIdOf(input)) ?? header.instances.at(-1);
}

async function firstListing(
  deps: Deps,
  { endpoint, credential, transport }: Dial,
): Promise<FirstListing> {
  const signal = AbortSignal.timeout(FIRST_LISTING_MS);
  try {
    return { kind: "listed", listing: await deps.upstream.list(endpoint, signal, credential, transport) };
  } catch (error) {
    if (error instanceof UpstreamError) return { kind: "failed", error };
    throw error;
  }
}

/** A server that has to be dialled must be one that may be dialled. */
function refuseEgress(deps: Deps, input: RegisterInput): void {
  const refusal = deps.upstream.refusal(input.endpoint);
  if (refusal) throw egressDenied(input, refusal);
}

function refuseCredential(deps: Deps, input: RegisterInput, credential: CredentialUse): void {
  const refusal = deps.upstream.credentialRefusal(input.endpoint, credential);
  if (refusal) throw unknownCredential(input, refusal);
}

function unknownCredential(input: RegisterInput, why: string): Fault {
  return new Fault("UNKNOWN_CREDENTIAL", why, { metadata: { server_id: input.serverId } });
}

function egressDenied(input: RegisterInput, why: string): Fault {
  return new Fault("EGRESS_DENIED", why, { metadata: { server_id: input.serverId } });
}

function refuseRejected(input: RegisterInput, set: DeclaredSet): void {
  if (set.rejectedCount === 0) return;
  if (set.tools.length > 0 && !input.strict) return;
  const violations: Violation[] = [];
  set.sent.forEach((tool, index) => {
    for (const reason of tool.reasons)
      violations.push({ field: `declared.tools[${index}]`, description: `${tool.name}: ${reason}` });
  });
  const shown = violations.slice(0, LIMITS.rejectedKept);
  const why =
    set.tools.length === 0
      ? "no tool could be accepted"
      : `strict was asked and ${set.rejectedCount} tools were rejected`;
  throw new Fault("TOOLS_REJECTED", `${why}: ${shown[0]?.description ?? ""}`, {
    violations: shown,
    metadata: { rejected: String(set.rejectedCount), sent: String(set.sent.length) },
  });
}
