import { describe, expect, it } from "vitest";
import type { Listing } from "../../../src/catalogue/upstream-port.js";
import { UpstreamError } from "../../../src/catalogue/upstream-port.js";
import type { ConditionFact, ListingOutcome } from "../../../src/catalogue/writer-port.js";
import type { Verdict } from "../../../src/domain/health/verdict.js";
import type { Intake } from "../../../src/probe/intake.js";
import { createIntake } from "../../../src/probe/intake.js";
import { FakeClock, SeededRandom } from "../../support/fake-clock.js";
import { definition, digestOfDefinition, ENDPOINT, HandDirectory, listingOf, NAMESPACE, recordOf, SILENT, toolOf } from "../../support/records.js";

const ALPHA = definition("alpha");
const BETA = definition("beta");
const FULL = listingOf([ALPHA, BETA]);
const EMPTY = listingOf([]);
const tools = [toolOf("alpha", { digest: digestOfDefinition(ALPHA) }), toolOf("beta", { digest: digestOfDefinition(BETA) })];
const known = (revision = 1) => recordOf(tools, { source: "introspected" }, revision);

/** An intake whose second looks are answered by `answer`. */
function bench(answer: () => Listing | Error = () => FULL) {
  const clock = new FakeClock();
  const records = new HandDirectory();
  records.set(known());
  const commits: { kind: "listing" | "learn"; listing: Listing; basedOn: number }[] = [];
  const conditions: ConditionFact[] = [];
  const verdicts: Verdict[] = [];
  const looks: number[] = [];
  const b = { outcome: (): ListingOutcome | Error => "committed" };
  const write = (kind: "listing" | "learn") => async (_ns: string, _id: string, listing: Listing, basedOn: number) => {
    commits.push({ kind, listing, basedOn });
    const outcome = b.outcome();
    if (outcome instanceof Error) throw outcome;
    return outcome;
  };
  const intake: Intake = createIntake({
    writer: {
      commitListing: write("listing"),
      learn: write("learn"),
      listed: (_ns, _id, fact) => void conditions.push(fact),
      health: () => undefined,
    },
    heard: (_ns, _id, _endpoint, verdict) => void verdicts.push(verdict),
    records,
    relist: async () => {
      looks.push(clock.monotonic());
      const record = records.server(NAMESPACE, "srv");
      const result = answer();
      if (!record) throw new Error("gone");
      if (result instanceof UpstreamError) await intake.failed(NAMESPACE, "srv", result, ENDPOINT);
      if (result instanceof Error) throw result;
      await intake.listed(NAMESPACE, "srv", result, ENDPOINT, record);
      return result;
    },
    clock,
    random: new SeededRandom(7),
    logger: SILENT,
  });
  const listed = (listing: Listing, basedOn = records.server(NAMESPACE, "srv") ?? known()) =>
    intake.listed(NAMESPACE, "srv", listing, ENDPOINT, basedOn);
  return Object.assign(b, { clock, records, commits, conditions, verdicts, looks, intake, listed });
}

describe("a listing of an introspected server", () => {
  it("is committed on the revision it was judged by", async () => {
    const b = bench();
    b.records.set(known(5));
    await b.listed(FULL);
    expect(b.commits).toEqual([{ kind: "listing", listing: FULL, basedOn: 5 }]);
    expect(b.conditions).toEqual([]);
  });

  it("that is empty is committed after three askings over 30 s", async () => {
    const b = bench(() => EMPTY);
    await b.listed(EMPTY);
    await b.clock.advance(29_999);
    expect(b.commits).toEqual([]);
    await b.clock.advance(1);
    expect(b.looks).toEqual([15_000, 30_000]);
    expect(b.commits).toMatchObject([{ listing: EMPTY }]);
    await b.clock.advance(600_000);
    expect(b.looks).toHaveLength(2);
  });

  it("that is empty while the server starts never reaches the catalogue", async () => {
    const b = bench(() => FULL);
    await b.listed(EMPTY);
    await b.clock.advance(60_000);
    expect(b.commits.map((c) => c.listing)).toEqual([FULL]);
    expect(b.looks).toEqual([15_000]);
  });

  it("that lost a tool is committed after a second asking one second later", async () => {
    const b = bench(() => listingOf([ALPHA]));
    await b.listed(listingOf([ALPHA]));
    await b.clock.advance(999);
    expect(b.commits).toEqual([]);
    await b.clock.advance(1);
    expect(b.commits).toHaveLength(1);
  });

  it("whose tool turned malformed has lost none", async () => {
    const b = bench();
    await b.listed(listingOf([ALPHA], { rejected: [{ name: "beta", reasons: ["inputSchema is missing"] }] }));
    expect(b.commits).toHaveLength(1);
  });

  it("askings with a failure between them do not add up", async () => {
    let looks = 0;
    const b = bench(() => (++looks === 1 ? new UpstreamError("connect", "refused") : EMPTY));
    await b.listed(EMPTY);
    await b.clock.advance(15_000);
    await b.listed(EMPTY);
    await b.clock.advance(29_000);
    expect(b.commits).toEqual([]);
  });
});

describe("a conflict", () => {
  it("with a change that touched no tool is judged again at once on the new record", async () => {
    const b = bench();
    b.outcome = () => {
      b.outcome = () => "committed";
      b.records.set(known(2));
      return "conflict";
    };
    await b.listed(FULL);
    expect(b.commits.map((c) => c.basedOn)).toEqual([1, 2]);
    expect(b.looks).toEqual([]);
  });

  it("with other tools makes the server be asked again, as our list may be the older one", async () => {
    const newer = listingOf([ALPHA, BETA, definition("gamma")]);
    const b = bench(() => newer);
    b.outcome = () => {
      b.outcome = () => "committed";
      b.records.set(recordOf([...tools, toolOf("gamma")], { source: "introspected" }, 2));
      return "conflict";
    };
    await b.listed(FULL);
    await b.clock.advance(1_000);
    expect(b.commits.map((c) => c.listing)).toEqual([FULL, newer]);
  });

  it("that never ends is given up after a bounded number of looks", async () => {
    const b = bench();
    let revision = 1;
    b.outcome = () => {
      b.records.set(known(++revision));
      return "conflict";
    };
    await b.listed(FULL);
    await b.clock.advance(3_600_000);
    expect(b.commits.length).toBeLessThan(20);
    expect(b.clock.sleeping).toBe(0);
  });

  it("a list asked for before a newer registration is not committed", async () => {
    const b = bench();
    const before = known();
    b.records.set(recordOf([toolOf("other")], { source: "introspected" }, 2));
    await b.listed(FULL, before);
    expect(b.commits).toEqual([]);
    await b.clock.advance(2_000);
    expect(b.looks).toHaveLength(1);
  });
});

describe("the store away", () => {
  it("makes the listing be tried again until it is back", async () => {
    const b = bench();
    b.outcome = () => new Error("the store is away");
    await b.listed(FULL);
    b.outcome = () => "committed";
    await b.clock.advance(1_000);
    expect(b.commits).toHaveLength(2);
    await b.clock.advance(600_000);
    expect(b.commits).toHaveLength(2);
  });
});

describe("a declared server", () => {
  it("has its unknown digests learned, and its list never judged", async () => {
    const b = bench();
    b.records.set(recordOf(tools));
    await b.listed(EMPTY);
    expect(b.commits).toMatchObject([{ kind: "learn" }]);
  });

  it("that answers again with another definition than declared is there, but not listed", async () => {
    const b = bench();
    b.records.set(recordOf(tools));
    await b.intake.failed(NAMESPACE, "srv", new UpstreamError("connect", "refused"), ENDPOINT);
    await b.listed(listingOf([definition("alpha", "other"), BETA]));
    expect(b.conditions).toMatchObject([{ type: "Listed", status: "false", reason: "DIGEST_MISMATCH" }]);
    expect(b.verdicts).toMatchObject([{ kind: "failed", reachable: false, message: "refused" }, { kind: "ok" }]);
  });
});

describe("conditions", () => {
  it("say nothing of the list of a server that nobody reached: that is for its probes", async () => {
    const b = bench();
    await b.listed(FULL);
    await b.intake.failed(NAMESPACE, "srv", new UpstreamError("connect", "refused"), ENDPOINT);
    await b.listed(FULL);
    expect(b.conditions).toEqual([]);
    expect(b.verdicts.map((v) => v.kind)).toEqual(["ok", "failed", "ok"]);
  });

  it("that another replica published are cleared by our success", async () => {
    const b = bench();
    const unlisted = { type: "Listed", status: "false", reason: "HTTP_ERROR", message: "", sinceMs: 1 } as const;
    b.records.set(recordOf(tools, { source: "introspected", conditions: [unlisted] }));
    await b.listed(FULL);
    expect(b.conditions).toMatchObject([{ type: "Listed", status: "true" }]);
  });

  it("a server that answers with something else than a list is not listed", async () => {
    const b = bench();
    await b.intake.failed(NAMESPACE, "srv", new UpstreamError("http", "500"), ENDPOINT);
    expect(b.conditions).toMatchObject([{ type: "Listed", status: "false", reason: "HTTP_ERROR" }]);
    expect(b.verdicts).toMatchObject([{ kind: "failed", reachable: true }]);
  });

  it("a server that wants credentials for its list is there, and not listed", async () => {
    const b = bench();
    await b.intake.failed(NAMESPACE, "srv", new UpstreamError("auth", "401"), ENDPOINT);
    expect(b.conditions).toMatchObject([{ type: "Listed", status: "false", reason: "AUTH_REQUIRED" }]);
    expect(b.verdicts).toMatchObject([{ kind: "answered", reason: "AUTH_REQUIRED" }]);
  });
});

describe("a server that is gone", () => {
  it("is not written to and not asked again", async () => {
    const b = bench(() => EMPTY);
    await b.listed(EMPTY);
    b.records.remove(NAMESPACE, "srv");
    b.intake.forget(NAMESPACE, "srv");
    await b.clock.advance(60_000);
    await b.listed(FULL, known());
    expect([b.commits, b.looks, b.conditions]).toEqual([[], [], []]);
    expect(b.clock.sleeping).toBe(0);
  });
});
