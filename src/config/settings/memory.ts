/** What is learned of past calls. */
import { DEFAULT_REPORT_RATE } from "../../domain/quotas.js";
import type { Setting } from "../setting.js";

export const MEMORY: readonly Setting[] = [
  {
    name: "memory",
    flag: "--memory",
    variable: "TOOLCRIB_MEMORY",
    fallback: "on",
    kind: { kind: "choice", of: ["on", "off"] },
    help: "Whether outcomes that callers report are remembered, as keyed hashes of the words of their intents: on or off. Off: nothing is recorded, recalled or stored.",
  },
  {
    name: "memoryRetention",
    flag: "--memory-retention",
    variable: "TOOLCRIB_MEMORY_RETENTION",
    fallback: "180",
    kind: { kind: "integer", min: 1, max: 3_650 },
    help: "Days after which a reported outcome is forgotten.",
  },
  {
    name: "reportRate",
    flag: "--report-rate",
    variable: "TOOLCRIB_REPORT_RATE",
    fallback: String(DEFAULT_REPORT_RATE),
    kind: { kind: "integer", min: 1, max: 1_000_000 },
    help: "Outcomes per second that one caller may report to this replica, twenty times as many at once; callers without identity are one.",
  },
];
