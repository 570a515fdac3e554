/** The conformance suite of all stores, as one function of how to open one. */
import { describe, test } from "vitest";
import type { Window } from "../../src/store/prepare.js";
import type { Check, Harness } from "./check.js";
import { BLOB_CHECKS, NOTE_CHECKS } from "./checks-beside.js";
import { LEASE_CHECKS } from "./checks-leases.js";
import { LOG_CHECKS } from "./checks-log.js";
import { POLL_CHECKS } from "./checks-poll.js";

export const CHECKS: readonly Check[] = [
  ...LOG_CHECKS,
  ...POLL_CHECKS,
  ...LEASE_CHECKS,
  ...BLOB_CHECKS,
  ...NOTE_CHECKS,
];

export type OpenHarness = (window: Window | undefined) => Promise<Harness>;

export function storeSuite(title: string, open: OpenHarness): void {
  describe(title, () => {
    for (const check of CHECKS) test(check.name, () => runCheck(check, open), 30_000);
  });
}

export async function runCheck(check: Check, open: OpenHarness): Promise<void> {
  const harness = await open(check.window);
  try {
    await check.run(harness);
  } finally {
    await harness.close();
  }
}
