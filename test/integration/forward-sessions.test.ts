/** What abandoned callers leave behind. */
import { expect, it, onTestFinished } from "vitest";
import { LIMITS } from "../../src/domain/limits.js";
import { createCaller } from "../../src/upstream/caller.js";
import { FakeClock } from "../support/fake-clock.js";
import { startFixture } from "../support/servers.js";
import { eventually, localPolicy, silentLogger, soon } from "../support/upstream.js";

it("sessions that nobody uses are ended at their servers, those in use stay", async () => {
  const server = await startFixture("calling-server.mjs", ["--sdk", "v1"]);
  const clock = new FakeClock();
  const caller = createCaller({ clock, logger: silentLogger, version: "0.0.0", policy: localPolicy });
  onTestFinished(() => caller.close());
  const call = (session: string, name: string, args: object) =>
    caller.call(
      { endpoint: server.url, transport: "streamable-http", credential: undefined, own: undefined, session },
      { name, args, meta: {}, modern: { params: {}, capabilities: undefined }, inputSchema: undefined, onMessage: () => undefined },
      soon(),
    );
  const sessions = async () => (await server.control({ op: "facts" }))["sessions"];
  const long = call("long", "slow", { steps: 3_000, stepMs: 10 });
  for (let i = 0; i < 20; i++) expect((await call(`session-${i}`, "echo", { text: "x" })).kind).toBe("result");
  await eventually(sessions, (n) => n === 21);
  await clock.advance(LIMITS.sessionIdleMs * 1.5);
  await eventually(sessions, (n) => n === 1);
  await caller.close();
  await eventually(sessions, (n) => n === 0);
  await long;
  expect((await server.requests()).filter(({ http }) => http === "DELETE")).toHaveLength(21);
});
