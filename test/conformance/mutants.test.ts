import { AssertionError } from "node:assert";
import { describe, expect, test } from "vitest";
import { BESIDE_MUTANTS, LEASE_MUTANTS } from "./mutants-beside.js";
import { LOG_MUTANTS } from "./mutants-log.js";
import { mutated } from "./mutate.js";
import { CHECKS, runCheck } from "./store.suite.js";

describe("the suite catches a store that", () => {
  test.each([...LOG_MUTANTS, ...LEASE_MUTANTS, ...BESIDE_MUTANTS])("$name", async ({ caughtBy, open }) => {
    const check = CHECKS.find((c) => c.name === caughtBy);
    if (!check) throw new Error(`there is no check '${caughtBy}'`);
    await expect(runCheck(check, open)).rejects.toThrow(AssertionError);
    await runCheck(
      check,
      mutated(() => ({})),
    );
  });
});
