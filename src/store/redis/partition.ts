/** The four ports of a partition over Redis. */
import type {
  Blob,
  Blobs,
  CommitResult,
  DueLease,
  Leases,
  Log,
  Notes,
  PartitionStore,
  Random,
  RenewOutcome,
} from "../../catalogue/ports.js";
import { LIMITS } from "../../domain/limits.js";
import { serverKey } from "../../domain/ids.js";
import { joinRow, splitRow } from "../codec/rows.js";
import type { PreparedCommit, Window } from "../prepare.js";
import { prepareCommit } from "../prepare.js";
import type { Connection } from "./connection.js";
import type { PartitionKeys } from "./keys.js";
import type { Reply } from "./reply.js";
import { bytesOf, listOf, numberOf, textOf } from "./reply.js";
import { SCRIPTS } from "./script.js";
import { readHead, readSnapshot } from "./snapshot.js";
import type { Tail } from "./tail.js";

export interface RedisPartitionParts {
  readonly partition: number;
  readonly connection: Connection;
  readonly tail: Tail;
  readonly keys: PartitionKeys;
  readonly random: Random;
  readonly window: Window;
}

/** Bytes of blobs sent in one script call, and blobs removed by one: Redis does nothing else meanwhile. */
const PUT_BYTES = 2 * 1024 * 1024;
const SWEEP_COUNT = 200;

export function redisPartition(parts: RedisPartitionParts): PartitionStore {
  const { partition } = parts;
  return { partition, log: logOf(parts), leases: leasesOf(parts), blobs: blobsOf(parts), notes: notesOf(parts) };
}

function logOf(parts: RedisPartitionParts): Log {
  const { partition, connection, tail, keys, random, window } = parts;
  const commitKeys = [
    keys.head,
    keys.log,
    keys.records,
    keys.revisions,
    keys.lease,
    keys.leaseFacts,
    keys.braked,
    keys.ended,
    keys.buried,
  ];
  return {
    async commit(commit) {
      const prepared = prepareCommit(commit, random.id());
      const script = onlyGivesBack(prepared) ? SCRIPTS.commitFreeing : SCRIPTS.commit;
      return commitResult(partition, await connection.run(script, commitKeys, commitArguments(prepared, window)));
    },
    snapshot: () => readSnapshot({ connection, keys, partition }),
    async head() {
      const { revision, chain } = await readHead({ connection, keys, partition });
      return { partition, revision, chain };
    },
    poll: (after, limit, signal) => tail.poll(after, limit, signal),
  };
}

/** Whether a commit removes a server or one of its instances, and adds none. */
function onlyGivesBack(commit: PreparedCommit): boolean {
  if (!commit.record) return true;
  return commit.leases.length > 0 && commit.leases.every((effect) => effect.kind === "end");
}

function commitArguments(commit: PreparedCommit, window: Window): (string | number | Uint8Array)[] {
  const effects = commit.leases.flatMap((effect) =>
    effect.kind === "grant"
      ? ["grant", effect.leaseId, effect.ttlMs, JSON.stringify([effect.namespace, effect.serverId, effect.instanceId])]
      : ["end", effect.leaseId, effect.buried ? "1" : "0"],
  );
  return [
    commit.key,
    commit.expect,
    commit.record ? "1" : "0",
    commit.record ?? "",
    commit.body,
    commit.seed,
    window.revisions,
    window.bytes,
    LIMITS.tombstoneMs,
    commit.bury ? "1" : "0",
    commit.requireDue.length,
    commit.seen ? commit.seen.revision : "",
    commit.seen ? commit.seen.chain : "",
    ...commit.requireDue,
    ...effects,
  ];
}

function commitResult(partition: number, reply: Reply): CommitResult {
  const [kind, fact, chain, at] = listOf(reply);
  switch (textOf(kind)) {
    case "conflict":
      return { kind: "conflict", revision: numberOf(fact) };
    case "not-due":
      return { kind: "not-due", leaseId: textOf(fact) };
    default:
      return {
        kind: "committed",
        position: { partition, revision: numberOf(fact), chain: textOf(chain) },
        atMs: numberOf(at),
      };
  }
}

const RENEW_OUTCOMES: readonly RenewOutcome[] = ["unknown", "renewed", "ended"];

function leasesOf({ connection, keys }: RedisPartitionParts): Leases {
  return {
    async renew(leaseIds) {
      const renewKeys = [keys.lease, keys.leaseFacts, keys.braked, keys.ended];
      const reply = listOf(await connection.run(SCRIPTS.renew, renewKeys, leaseIds));
      return reply.map((outcome) => RENEW_OUTCOMES[numberOf(outcome)] ?? "unknown");
    },
    async due(limit) {
      const reply = await connection.run(SCRIPTS.due, [keys.lease, keys.leaseFacts, keys.braked], [limit]);
      const [nowMs, total, dueTotal, ...rest] = listOf(reply);
      const due: DueLease[] = [];
      for (let i = 0; i + 3 < rest.length; i += 4) due.push(dueLeaseOf(rest.slice(i, i + 4)));
      return { nowMs: numberOf(nowMs), total: numberOf(total), dueTotal: numberOf(dueTotal), due };
    },
    async extend(leaseIds) {
      await connection.run(SCRIPTS.extend, [keys.lease, keys.leaseFacts, keys.braked], leaseIds);
    },
    async buried(namespace, serverId) {
      return numberOf(await connection.run(SCRIPTS.buried, [keys.buried], [serverKey(namespace, serverId)])) === 1;
    },
  };
}

function dueLeaseOf([id, end, facts, braked]: readonly Reply[]): DueLease {
  const { text: ttl, bytes } = splitRow(bytesOf(facts));
  const [namespace, serverId, instanceId] = JSON.parse(Buffer.from(bytes).toString("utf8")) as [string, string, string];
  return {
    leaseId: textOf(id),
    namespace,
    serverId,
    instanceId,
    ttlMs: Number(ttl),
    endedAtMs: numberOf(end),
    braked: numberOf(braked) === 1,
  };
}

function blobsOf({ connection, keys }: RedisPartitionParts): Blobs {
  const keysOf = (namespace: string) => [keys.blobs(namespace), keys.blobRefs(namespace), keys.blobNamespaces];
  return {
    async put(namespace, blobs) {
      for (const part of bySize(blobs)) {
        const pairs = part.flatMap((blob) => [blob.digest, joinRow(String(blob.fetchedAtMs), blob.bytes)]);
        await connection.run(SCRIPTS.blobPut, keysOf(namespace), [namespace, ...pairs]);
      }
    },
    async get(namespace, digests) {
      if (digests.length === 0) return [];
      const rows = listOf(await connection.call("HMGET", keys.blobs(namespace), ...digests));
      return rows.map((row, i) => (row === null ? undefined : blobOf(digests[i] ?? "", row)));
    },
    async touch(namespace, digests) {
      await connection.run(SCRIPTS.blobTouch, [keys.blobRefs(namespace)], digests);
    },
    async sweep(keepMs) {
      let total = 0;
      for (const member of listOf(await connection.call("SMEMBERS", keys.blobNamespaces))) {
        const namespace = textOf(member);
        let swept: number;
        do {
          const args = [namespace, keepMs, SWEEP_COUNT];
          swept = numberOf(await connection.run(SCRIPTS.blobSweep, keysOf(namespace), args));
          total += swept;
        } while (swept === SWEEP_COUNT);
      }
      return total;
    },
  };
}

function blobOf(digest: string, row: Reply): Blob {
  const { text, bytes } = splitRow(bytesOf(row));
  return { digest, bytes, fetchedAtMs: Number(text) };
}

function bySize(blobs: readonly Blob[]): Blob[][] {
  const parts: Blob[][] = [];
  let size = PUT_BYTES;
  for (const blob of blobs) {
    if (size + blob.bytes.byteLength > PUT_BYTES) {
      parts.push([]);
      size = 0;
    }
    parts[parts.length - 1]?.push(blob);
    size += blob.bytes.byteLength;
  }
  return parts;
}

function notesOf({ connection, keys }: RedisPartitionParts): Notes {
  return {
    async get(key) {
      const row = await connection.call("GET", keys.note(key));
      if (row === null) return undefined;
      const { text, bytes } = splitRow(bytesOf(row));
      return { bytes, version: Number(text) };
    },
    async put(key, bytes, ttlMs, expect) {
      const args = [bytes, Math.ceil(ttlMs), expect ?? ""];
      const version = textOf(await connection.run(SCRIPTS.notePut, [keys.note(key), keys.noteVersion], args));
      return version === "" ? undefined : Number(version);
    },
    async remove(key, expect) {
      return numberOf(await connection.run(SCRIPTS.noteRemove, [keys.note(key)], [expect])) === 1;
    },
  };
}
