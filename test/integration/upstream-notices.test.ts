import { expect, it, describe, onTestFinished } from "vitest";
import type { ClosableUpstream } from "../../src/upstream/upstream.js";
import { corpusFile, startFixture } from "../support/servers.js";
import type { Fixture } from "../support/servers.js";
import { eventually, failureOf, soon, startUpstream } from "../support/upstream.js";

interface Subscription {
  readonly heard: () => number;
  readonly ended: Promise<void>;
  readonly leave: () => void;
}

function subscribe(upstream: ClosableUpstream, server: Fixture): Subscription {
  const leaving = new AbortController();
  let heard = 0;
  const ended = upstream.subscribe(server.url, () => heard++, leaving.signal);
  ended.catch(() => undefined);
  onTestFinished(() => leaving.abort());
  return { heard: () => heard, ended, leave: () => leaving.abort() };
}

/** The raw fixtures tell how many streams they hold. */
async function streamsOpen(server: Fixture, count: number): Promise<void> {
  await eventually(
    async () => Number((await server.control({ op: "streams" }))["streams"]),
    (open) => open === count,
  );
}

describe.each([{ args: ["--sdk", "v1"] }, { args: ["--sdk", "v2"] }, { args: ["--sdk", "v2", "--era", "legacy"] }])(
  "a server on the official SDK ($args)",
  ({ args }) => {
    it("is heard when its tools are added, changed and removed", async () => {
      const server = await startFixture("sdk-server.mjs", args);
      const upstream = startUpstream();
      await upstream.list(server.url, soon());
      const subscription = subscribe(upstream, server);
      await eventually(
        async () => {
          await server.control({ op: "change", name: "echo" });
          return subscription.heard();
        },
        (heard) => heard > 0,
      );
      for (const body of [
        { op: "add", name: "extra" },
        { op: "change", name: "echo" },
        { op: "remove", name: "greet" },
      ]) {
        const before = subscription.heard();
        await server.control(body);
        await eventually(subscription.heard, (heard) => heard > before);
      }
      const listing = await upstream.list(server.url, soon());
      expect(listing.tools.map(({ name }) => name)).toEqual(["add", "echo", "extra"]);
      subscription.leave();
      await subscription.ended;
    });
  },
);

describe.each(["legacy", "modern"])("change notices of the %s era", (era) => {
  const start = () => startFixture("corpus-server.mjs", [corpusFile("time"), "--era", era]);

  it("are heard one by one, and the stream is closed when nobody listens any more", async () => {
    const server = await start();
    const subscription = subscribe(startUpstream(), server);
    await streamsOpen(server, 1);
    await server.control({ op: "notify" });
    await eventually(subscription.heard, (heard) => heard === 1);
    await server.control({ op: "notify" });
    await eventually(subscription.heard, (heard) => heard === 2);
    subscription.leave();
    await subscription.ended;
    await streamsOpen(server, 0);
  });

  it("may have been lost when the stream is opened again, so opening counts as one", async () => {
    const server = await start();
    const upstream = startUpstream();
    const first = subscribe(upstream, server);
    await streamsOpen(server, 1);
    await server.control({ op: "drop-streams" });
    expect(await failureOf(first.ended)).toMatchObject({ kind: "connect" });
    expect(first.heard()).toBe(0);
    const second = subscribe(upstream, server);
    await eventually(second.heard, (heard) => heard === 1);
  });

  it("end with an error when the server goes away", async () => {
    const server = await start();
    const subscription = subscribe(startUpstream(), server);
    await streamsOpen(server, 1);
    await server.stop();
    expect(await failureOf(subscription.ended)).toMatchObject({ kind: "connect" });
  });
});

it("a lost session is replaced before the stream is opened", async () => {
  const server = await startFixture("corpus-server.mjs", [corpusFile("time"), "--era", "legacy"]);
  const upstream = startUpstream();
  await upstream.list(server.url, soon());
  await server.control({ op: "forget-sessions" });
  const subscription = subscribe(upstream, server);
  await streamsOpen(server, 1);
  await server.control({ op: "notify" });
  await eventually(subscription.heard, (heard) => heard === 1);
});

it("a server that does not offer notices is refused at once", async () => {
  const server = await startFixture("faulty-server.mjs", ["--fault", "no-push", "--era", "legacy"]);
  const error = await failureOf(startUpstream().subscribe(server.url, () => undefined, soon()));
  expect(error.message).toMatch(/does not say when its tool list changes/);
});

it("a server that offers notices but has no stream for them is an error, not silence", async () => {
  const server = await startFixture("corpus-server.mjs", [corpusFile("time"), "--era", "legacy", "--no-push"]);
  const error = await failureOf(startUpstream().subscribe(server.url, () => undefined, soon()));
  expect(error).toMatchObject({ kind: "rpc" });
  expect(error.message).toMatch(/HTTP 405/);
});

it("a signal that has already aborted ends a subscription without an error", async () => {
  const server = await startFixture("corpus-server.mjs", [corpusFile("time")]);
  await startUpstream().subscribe(server.url, () => undefined, AbortSignal.abort());
});
