/** The numbers that stand for the domain's words in stored bytes: those of `toolcrib.v1`. */
import type { Cause } from "../../domain/change.js";
import type { Availability, Condition, PublishedBreaker, Retention, ToolSource, Transport } from "../../domain/server.js";

const AVAILABILITY = { available: 1, unavailable: 2 } as const satisfies Record<Availability, number>;
const SOURCE = { declared: 1, introspected: 2 } as const satisfies Record<ToolSource, number>;
const RETENTION = { leased: 1, standing: 2 } as const satisfies Record<Retention, number>;
const CONDITION_TYPE = {
  Reachable: 1,
  Listed: 2,
  AuthRequired: 3,
  Slow: 4,
  Flapping: 5,
  Draining: 6,
} as const satisfies Record<Condition["type"], number>;
const CONDITION_STATUS = { true: 1, false: 2, unknown: 3 } as const satisfies Record<Condition["status"], number>;
const CAUSE = {
  register: 1,
  deregister: 2,
  expire: 3,
  listing: 4,
  condition: 5,
  learned: 6,
  isolate: 7,
  resume: 8,
  overlay: 9,
  quarantine: 10,
  approve: 11,
} as const satisfies Record<Cause, number>;
const TRANSPORT = { "streamable-http": 1, "http-sse": 2 } as const satisfies Record<Transport, number>;

const BREAKER = { closed: 1, open: 2, isolated: 4 } as const satisfies Record<PublishedBreaker["kind"], number>;

/** The word of a number; undefined for one that a newer version wrote. */
function wordOf<W extends string>(table: Record<W, number>, value: number): W | undefined {
  return (Object.keys(table) as W[]).find((word) => table[word] === value);
}

export const availabilityNumber = (word: Availability): number => AVAILABILITY[word];
export const availabilityWord = (value: number): Availability | undefined => wordOf(AVAILABILITY, value);
export const sourceNumber = (word: ToolSource): number => SOURCE[word];
export const sourceWord = (value: number): ToolSource | undefined => wordOf(SOURCE, value);
export const retentionNumber = (word: Retention): number => RETENTION[word];
export const retentionWord = (value: number): Retention | undefined => wordOf(RETENTION, value);
export const conditionTypeNumber = (word: Condition["type"]): number => CONDITION_TYPE[word];
export const conditionTypeWord = (value: number): Condition["type"] | undefined => wordOf(CONDITION_TYPE, value);
export const conditionStatusNumber = (word: Condition["status"]): number => CONDITION_STATUS[word];
export const conditionStatusWord = (value: number): Condition["status"] | undefined => wordOf(CONDITION_STATUS, value);
export const transportNumber = (word: Transport): number => TRANSPORT[word];
export const transportWord = (value: number): Transport | undefined => wordOf(TRANSPORT, value);
export const causeNumber = (word: Cause): number => CAUSE[word];
export const causeWord = (value: number): Cause | undefined => wordOf(CAUSE, value);
export const breakerNumber = (word: PublishedBreaker["kind"]): number => BREAKER[word];
export const breakerWord = (value: number): PublishedBreaker["kind"] | undefined => wordOf(BREAKER, value);
