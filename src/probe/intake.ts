/** What a listing, or its failure, means for the catalogue. Hears every listing, whoever asked for it. */
import type { Clock, Logger, Random } from "../catalogue/ports.js";
import type { Listing } from "../catalogue/upstream-port.js";
import type { ConditionFact, ListingIntake, ListingWriter } from "../catalogue/writer-port.js";
import { diffTools } from "../domain/change.js";
import type { Verdict } from "../domain/health/verdict.js";
import { serverKey } from "../domain/ids.js";
import type { ServerRecord } from "../domain/server.js";
import { LISTED, mismatchOf, unlisted } from "./conditions.js";
import { afterFailure } from "./pace.js";
import type { Records, Relist } from "./ports.js";
import { createReasking } from "./reasking.js";
import type { Suspicion } from "./suspicion.js";
import { verdictOf } from "./verdicts.js";
import { judge, NO_SUSPICION } from "./suspicion.js";

/** Listings that may come to nothing in a row before the server's own pace decides when to look again. */
const RETRIES = 5;

export interface Intake extends ListingIntake {
  /** Drops what is remembered about a server that is gone. */
  forget(namespace: string, serverId: string): void;
  stop(): Promise<void>;
}

export interface IntakeDeps {
  readonly writer: ListingWriter;
  readonly records: Records;
  readonly relist: Relist;
  /** Tells whoever looks after the server's health what the listing says of it. */
  readonly heard: (namespace: string, serverId: string, endpoint: string, verdict: Verdict) => void;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

/** What one server's last listings left to remember; absent when all is well. */
interface Memo {
  readonly suspicion: Suspicion;
  /** Listings in a row that could not be committed. */
  readonly retries: number;
  readonly failing: boolean;
}

const ALL_WELL: Memo = { suspicion: NO_SUSPICION, retries: 0, failing: false };

export function createIntake({ writer, records, relist, heard, clock, random, logger }: IntakeDeps): Intake {
  const memos = new Map<string, Memo>();
  const reasking = createReasking({ relist, clock, logger });

  function remember(key: string, change: Partial<Memo>): void {
    const memo = { ...(memos.get(key) ?? ALL_WELL), ...change };
    if (memo.suspicion.kind === "none" && memo.retries === 0 && !memo.failing) memos.delete(key);
    else memos.set(key, memo);
  }

  function forget(namespace: string, serverId: string): void {
    memos.delete(serverKey(namespace, serverId));
    reasking.forget(namespace, serverId);
  }

  /** The listing came to nothing through no fault of the server's: look again, a bounded number of times. */
  function retry(namespace: string, serverId: string, why: string): void {
    const key = serverKey(namespace, serverId);
    const retries = (memos.get(key)?.retries ?? 0) + 1;
    if (retries > RETRIES) {
      remember(key, { retries: 0 });
      logger.warn(
        { namespace, server: serverId, why, retries: RETRIES },
        "a listing could not be committed; the next look decides",
      );
      return;
    }
    remember(key, { retries });
    reasking.after(
      namespace,
      serverId,
      afterFailure(retries, true, () => random.next()),
    );
  }

  /** Says whether the list could be read, unless everybody believes so already. */
  function publish(record: ServerRecord, fact: ConditionFact): void {
    const { namespace, serverId, conditions } = record.header;
    const known = conditions.find((c) => c.type === fact.type);
    if (fact.status === "false" || known?.status === "false") writer.listed(namespace, serverId, fact);
  }

  async function commit(record: ServerRecord, listing: Listing): Promise<void> {
    const { namespace, serverId, source } = record.header;
    const write = source === "declared" ? writer.learn : writer.commitListing;
    const outcome = await write.call(writer, namespace, serverId, listing, record.revision);
    if (outcome === "gone") return forget(namespace, serverId);
    if (outcome === "conflict") return again(record, listing);
    remember(serverKey(namespace, serverId), { suspicion: NO_SUSPICION, retries: 0, failing: false });
    reasking.forget(namespace, serverId);
    publish(record, source === "declared" ? mismatchOf(record, listing) : LISTED);
  }

  /** Somebody else changed the server while we committed. The fold may not have it yet, so another look decides. */
  function again(record: ServerRecord, listing: Listing): Promise<void> | undefined {
    const { namespace, serverId } = record.header;
    const now = records.server(namespace, serverId);
    if (!now) return void forget(namespace, serverId);
    const key = serverKey(namespace, serverId);
    const retries = (memos.get(key)?.retries ?? 0) + 1;
    if (now.revision !== record.revision && sameOffer(now, record) && retries <= RETRIES) {
      remember(key, { retries });
      return consider(now, listing);
    }
    retry(namespace, serverId, "the server changed in the catalogue meanwhile");
    return undefined;
  }

  async function consider(record: ServerRecord, listing: Listing): Promise<void> {
    const { namespace, serverId, source, pending, rejectedCount } = record.header;
    if (source === "declared") return commit(record, listing);

    const key = serverKey(namespace, serverId);
    const known = { tools: record.tools.length + rejectedCount, pending };
    const listedTools = listing.tools.length + listing.rejected.length;
    const before = memos.get(key)?.suspicion ?? NO_SUSPICION;
    const judgement = judge(known, listedTools, before, clock.monotonic());
    if (judgement.kind === "believe") return commit(record, listing);
    remember(key, { suspicion: judgement.suspicion });
    reasking.after(namespace, serverId, judgement.afterMs);
    if (before.kind === "none")
      logger.info(
        { namespace, server: serverId, known: known.tools, listed: listedTools },
        "a list lost tools: asking again before believing it",
      );
  }

  return {
    async listed(namespace, serverId, listing, endpoint, basedOn) {
      const record = records.server(namespace, serverId);
      if (!record) return forget(namespace, serverId);
      heard(namespace, serverId, endpoint, { kind: "ok", tookMs: undefined });
      try {
        // A list that was asked for before the server changed may be older than what the catalogue holds.
        if (!sameOffer(record, basedOn))
          return retry(namespace, serverId, "the server changed in the catalogue meanwhile");
        await consider(record, listing);
      } catch (err) {
        logger.warn({ namespace, server: serverId, err }, "a listing could not be committed");
        retry(namespace, serverId, "the commit failed");
      }
    },
    async failed(namespace, serverId, error, endpoint) {
      const record = records.server(namespace, serverId);
      if (!record) return forget(namespace, serverId);
      // It says nothing about a server that has moved meanwhile.
      if (!record.header.instances.some((i) => i.endpoint === endpoint)) return;
      const key = serverKey(namespace, serverId);
      const before = memos.get(key) ?? ALL_WELL;
      // Askings that make an empty or shrunken list believed must follow each other without a failure between.
      remember(key, { suspicion: NO_SUSPICION, failing: true });
      if (!before.failing)
        logger.info(
          { namespace, server: serverId, kind: error.kind, reason: error.message },
          "a server could not be listed",
        );
      heard(namespace, serverId, endpoint, verdictOf(error));
      const fact = unlisted(error);
      if (fact) publish(record, fact);
    },
    forget,
    stop: () => reasking.stop(),
  };
}

/** The same tools from the same registration: revisions that only moved leases, instances or conditions change neither. */
function sameOffer(a: ServerRecord, b: ServerRecord): boolean {
  if (a === b) return true;
  const newest = (r: ServerRecord): string => {
    const instance = r.header.instances.at(-1);
    return instance
      ? `${instance.instanceId} ${instance.endpoint} ${instance.setDigest} ${instance.credential} ${instance.sharePrivate}`
      : "";
  };
  return (
    a.header.source === b.header.source &&
    newest(a) === newest(b) &&
    (a.tools === b.tools || diffTools(a.tools, b.tools).length === 0)
  );
}
