/** Tokens that were guessed, cut, taken from elsewhere, or belong to a history that never was. */
import { status } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { everything, filterHash } from "../../src/domain/filter.js";
import { formatResumeToken, formatRevision, parseRevision, type Position, startOf } from "../../src/domain/revision.js";
import { readError, SERVICE } from "../integration/grpc-support.js";
import { eventually } from "../support/upstream.js";
import { ELSEWHERE, type Expected, INVALID, Target } from "./support.js";

let target: Target;
let head: Position;
beforeAll(async () => {
  target = await Target.start();
  head = parseRevision((await target.remote.call("getStubs")).revision) as Position;
});
afterAll(() => target.stop());

const base64 = (text: string): string => Buffer.from(text).toString("base64url");
const noise: readonly (readonly [what: string, token: string])[] = [
  ["words", "not-a-token"],
  ["noise", base64("\u0001\u00ff\u0000 noise \u{1f528}")],
  ["another alphabet", "!!!!"],
  ["a path", "../../../etc/passwd"],
  ["one of the next version", base64("v9.0.1.00")],
  ["a revision beyond 2^53", base64("v1.0.9999999999999999.0")],
  ["a negative revision", base64("v1.0.-1.0")],
  ["__proto__", "__proto__"],
];
const long: readonly (readonly [what: string, token: string])[] = [["513 characters", "A".repeat(513)]];

describe("page tokens", () => {
  const BAD: Expected = { code: "INVALID_ARGUMENT", reason: "INVALID_PAGE_TOKEN", fields: ["page_token"] };

  it.each(noise)("%s", async (_what, pageToken) => {
    for (const method of ["getStubs", "listServers"]) await target.refuses(method, { pageToken }, { ...BAD, says: ["not one that this registry gave"] });
  });

  it.each(long)("%s", async (_what, pageToken) => {
    for (const method of ["getStubs", "listServers"]) await target.refuses(method, { pageToken }, { ...INVALID, fields: ["page_token"], says: ["512", "513"] });
  });

  it("of another filter, another namespace, another list", async () => {
    const { nextPageToken } = await target.remote.call("getStubs", { pageSize: 1 });
    expect(nextPageToken).not.toBe("");
    const says = ["another filter"];
    await target.refuses("getStubs", { pageToken: nextPageToken, filter: { tagsAny: ["seeded"] } }, { ...BAD, says });
    await target.refuses("getStubs", { pageToken: nextPageToken, namespace: ELSEWHERE }, { ...BAD, says });
    await target.refuses("listServers", { pageToken: nextPageToken }, BAD);
    expect((await target.remote.call("getStubs", { pageToken: nextPageToken })).stubs).toMatchObject([{ toolId: "seed/two" }]);
  });

  it("made by hand for this filter: only what the filter allows is shown", async () => {
    const own = filterHash(everything("default"));
    expect((await target.remote.call("getStubs", { pageToken: base64(`p1.${own}.a/a`) })).stubs).toHaveLength(2);
    expect((await target.remote.call("getStubs", { pageToken: base64(`p1.${own}.z/z`) })).stubs).toEqual([]);
    await target.refuses("getStubs", { pageToken: base64(`p1.${own}.../..`) }, BAD);
  });
});

describe("resume tokens", () => {
  const BAD: Expected = { code: "INVALID_ARGUMENT", reason: "INVALID_TOKEN", fields: ["resume_token"] };
  const relist = (cause: string): Expected => ({ code: "OUT_OF_RANGE", reason: "RELIST_REQUIRED", metadata: { cause }, says: ["snapshot"] });
  const own = filterHash(everything("default"));

  it.each(noise)("%s", async (_what, token) => {
    await refuses({ resumeToken: token }, { ...BAD, says: ["not one that this registry gave"] });
  });

  it.each(long)("%s", async (_what, resumeToken) => {
    await refuses({ resumeToken }, { ...INVALID, fields: ["resume_token"], says: ["512", "513"] });
  });

  it("a page token and a revision are no resume tokens", async () => {
    const { revision, nextPageToken } = await target.remote.call("getStubs", { pageSize: 1 });
    for (const resumeToken of [revision, nextPageToken]) await refuses({ resumeToken }, BAD);
  });

  it("of another filter or namespace", async () => {
    const resumeToken = formatResumeToken(head, own);
    await refuses({ resumeToken, filter: { tagsAny: ["seeded"] } }, { ...BAD, says: ["another filter"] });
    await refuses({ resumeToken, namespace: ELSEWHERE }, { ...BAD, says: ["another filter or namespace"] });
  });

  it("of another partition", async () => {
    await refuses({ resumeToken: formatResumeToken({ ...head, partition: 7 }, own) }, { ...BAD, says: ["another partition"] });
  });

  it("ahead of the log", async () => {
    for (const ahead of [1, 1_000_000]) {
      await refuses({ resumeToken: formatResumeToken({ ...head, revision: head.revision + ahead }, own) }, relist("ahead"));
    }
  });

  it("of a broken chain, now and long ago", async () => {
    const dead = { ...head, chain: head.chain.replace(/./, (c) => (c === "0" ? "1" : "0")) };
    await refuses({ resumeToken: formatResumeToken(dead, own) }, relist("chain"));
    await refuses({ resumeToken: formatResumeToken({ ...dead, revision: 1 }, own) }, relist("chain"));
    await refuses({ resumeToken: formatResumeToken({ ...startOf(0), chain: "f" }, own) }, relist("chain"));
  });

  it("the right one is honoured", async () => {
    const watch = target.remote.watch({ resumeToken: formatResumeToken(head, own) });
    await eventually(() => watch.bookmarks, (n) => n > 0);
    expect(watch).toMatchObject({ error: undefined, stubs: [], events: [] });
  });
});

describe("revisions", () => {
  it.each(noise)("%s as min_revision, wherever one is taken", async (_what, minRevision) => {
    const bad: Expected = { ...INVALID, fields: ["min_revision"], says: ["not a revision that this registry gave"] };
    await target.refuses("getStubs", { minRevision }, bad);
    await target.refuses("listServers", { minRevision }, bad);
    await target.refuses("getServer", { serverId: "seed", minRevision }, bad);
    await target.refuses("getFullSchema", { toolId: "seed/one", minRevision }, bad);
    await target.refuses("batchGetFullSchemas", { toolIds: ["seed/one"], minRevision }, bad);
    await refuses({ minRevision }, bad);
  });

  it.each(noise)("%s as if_revision", async (_what, ifRevision) => {
    await target.refuses("getStubs", { ifRevision }, { ...INVALID, fields: ["if_revision"], says: ["not a revision"] });
  });

  it.each(long)("%s", async (_what, text) => {
    await target.refuses("getStubs", { minRevision: text, ifRevision: text }, { ...INVALID, fields: ["min_revision", "if_revision"], says: ["512", "513"] });
  });

  it("min_revision of another partition, of a dead history, and one not reached", async () => {
    const other = formatRevision({ ...head, partition: 7 });
    await target.refuses("getStubs", { minRevision: other }, { ...INVALID, fields: ["min_revision"], says: ["another partition"] });
    const dead = formatRevision({ ...head, chain: "dead" });
    await target.refuses("getStubs", { minRevision: dead }, { code: "OUT_OF_RANGE", reason: "DEAD_REVISION", says: ["gone"] });
    const future = formatRevision({ ...head, revision: head.revision + 5 });
    const error = await target.refuses("getStubs", { minRevision: future }, { code: "UNAVAILABLE", reason: "REVISION_NOT_REACHED", says: ["5000 ms"] });
    expect(error.retryMs).toBeGreaterThan(0);
  });

  it("if_revision together with page_token", async () => {
    const { revision, nextPageToken } = await target.remote.call("getStubs", { pageSize: 1 });
    const request = { pageSize: 1, ifRevision: revision, pageToken: nextPageToken };
    await target.refuses("getStubs", request, { ...INVALID, fields: ["if_revision"], says: ["page_token"] });
  });

  it("if_revision of another partition, a dead history or the future is answered in full", async () => {
    for (const other of [{ partition: 7 }, { chain: "dead" }, { revision: head.revision + 1 }]) {
      const answer = await target.remote.call("getStubs", { ifRevision: formatRevision({ ...head, ...other }) });
      expect(answer).toMatchObject({ notModified: false, stubs: [{ toolId: "seed/one" }, { toolId: "seed/two" }] });
    }
  });
});

/** A Watch that must end with this refusal, before anything was sent. */
async function refuses(request: object, expected: Expected): Promise<void> {
  await target.refusal(async () => {
    const watch = target.remote.watch(request);
    const error = await eventually(() => watch.error, (e) => e !== undefined);
    expect(watch).toMatchObject({ stubs: [], events: [], bookmarks: 0, token: "" });
    expect(status[readError(error as NonNullable<typeof error>).code as keyof typeof status]).toBe(error?.code);
    throw error;
  }, { loggedAs: `${SERVICE}/Watch`, ...expected });
}
