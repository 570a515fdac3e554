import { describe, expect, it } from "vitest";
import type { Listing } from "../../../src/catalogue/upstream-port.js";
import { UpstreamError } from "../../../src/catalogue/upstream-port.js";
import { LIMITS } from "../../../src/domain/limits.js";
import { dialsOf } from "../../../src/schemas/lister.js";
import { definition, instanceOf, listingOf, NAMESPACE, recordOf, toolOf } from "../../support/records.js";
import { loaderBench } from "../../support/schemas.js";

const url = (port: number) => `http://127.0.0.1:${port}/mcp`;
const instance = (port: number, setDigest: string) =>
  instanceOf({ instanceId: `instance-${port}`, endpoint: port === 0 ? "" : url(port), setDigest });
const endpointsOf = (...of: Parameters<typeof dialsOf>) => dialsOf(...of).map(({ endpoint }) => endpoint);
const LISTING = listingOf([definition("alpha")]);

describe("which instances are asked", () => {
  it("the newest first, others only when their set is the server's", () => {
    const instances = [instance(1, "new"), instance(2, "old"), instance(3, "new"), instance(4, "new")];
    expect(endpointsOf(recordOf([], { setDigest: "new", instances }))).toEqual([url(4), url(3), url(1)]);
  });

  it("never one without an endpoint", () => {
    expect(endpointsOf(recordOf([], { setDigest: "new", instances: [instance(1, "new"), instance(0, "new")] }))).toEqual([url(1)]);
    expect(endpointsOf(recordOf([], { setDigest: "new", instances: [instance(1, "old"), instance(0, "new")] }))).toEqual([]);
  });

  it("a dead newest instance leaves its sibling time to answer", async () => {
    const b = loaderBench();
    b.directory.set(recordOf([toolOf("alpha")], { setDigest: "s", instances: [instance(1, "s"), instance(2, "s")] }));
    b.upstream.answer = (endpoint) => (endpoint === url(2) ? "silence" : LISTING);
    const listing = b.lister.list(NAMESPACE, "srv");
    await b.clock.advance(LIMITS.loadMs);
    expect(await listing).toBe(LISTING);
    expect(b.heard).toEqual([`listed srv ${url(1)}`]);
  });

  it("when all fail, the newest one's error is told, once", async () => {
    const b = loaderBench();
    b.directory.set(recordOf([], { setDigest: "s", instances: [instance(1, "s"), instance(2, "s")] }));
    b.upstream.answer = (endpoint) => new UpstreamError(endpoint === url(2) ? "http" : "connect", "no");
    await expect(b.lister.list(NAMESPACE, "srv")).rejects.toMatchObject({ kind: "http" });
    expect(b.heard).toEqual(["failed srv http"]);
  });
});

describe("sharing", () => {
  it("a relist never joins a listing that began before it, and all who ask meanwhile share the next one", async () => {
    const b = loaderBench();
    b.directory.set(recordOf([toolOf("alpha")]));
    const open: ((listing: Listing) => void)[] = [];
    b.upstream.answer = () => new Promise((resolve) => open.push(resolve));
    const first = b.lister.list(NAMESPACE, "srv");
    const later = [b.lister.relist(NAMESPACE, "srv"), b.lister.relist(NAMESPACE, "srv")];
    const joined = b.lister.list(NAMESPACE, "srv");
    await b.clock.settle();
    expect(b.upstream.asked).toHaveLength(1);
    const old = listingOf([]);
    open[0]?.(old);
    await b.clock.settle();
    expect([await first, await joined]).toEqual([old, old]);
    expect(b.upstream.asked).toHaveLength(2);
    open[1]?.(LISTING);
    expect(await Promise.all(later)).toEqual([LISTING, LISTING]);
    expect(b.upstream.asked).toHaveLength(2);
  });

  it("a relist settles when the intake is through; a list as soon as the listing is there", async () => {
    let through: () => void = () => {};
    const b = loaderBench({ intake: { listed: () => new Promise((resolve) => (through = resolve)) } });
    b.directory.set(recordOf([toolOf("alpha")]));
    b.upstream.answer = () => LISTING;
    let settled = false;
    const relist = b.lister.relist(NAMESPACE, "srv").then(() => (settled = true));
    expect(await b.lister.list(NAMESPACE, "srv")).toBe(LISTING);
    await b.clock.settle();
    expect(settled).toBe(false);
    through();
    await relist;
    expect(settled).toBe(true);
  });

  it("a relist asks although the last listing has just failed", async () => {
    const b = loaderBench();
    b.directory.set(recordOf([toolOf("alpha")]));
    b.upstream.answer = () => new UpstreamError("connect", "refused");
    await expect(b.lister.list(NAMESPACE, "srv")).rejects.toThrow("refused");
    b.upstream.answer = () => LISTING;
    expect(await b.lister.relist(NAMESPACE, "srv")).toBe(LISTING);
    expect(await b.lister.list(NAMESPACE, "srv")).toBe(LISTING);
  });

  it("an intake that fails against its word keeps nobody waiting and nothing stuck", async () => {
    const b = loaderBench({ intake: { listed: () => Promise.reject(new Error("a bug")) } });
    b.directory.set(recordOf([toolOf("alpha")]));
    b.upstream.answer = () => LISTING;
    expect(await b.lister.relist(NAMESPACE, "srv")).toBe(LISTING);
    expect(await b.lister.relist(NAMESPACE, "srv")).toBe(LISTING);
    expect(b.upstream.asked).toHaveLength(2);
  });
});

describe("stopping", () => {
  it("ends listings under way without a word about their servers, and refuses new ones", async () => {
    const b = loaderBench();
    b.directory.set(recordOf([toolOf("alpha")]));
    const listing = b.lister.list(NAMESPACE, "srv");
    b.lister.stop();
    await expect(listing).rejects.toThrow("given up");
    await b.clock.settle();
    expect(b.heard).toEqual([]);
    await expect(b.lister.relist(NAMESPACE, "srv")).rejects.toMatchObject({ reason: "DRAINING" });
    expect(b.clock.sleeping).toBe(0);
  });
});
