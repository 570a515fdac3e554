import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { RegistryConnection } from "../../src/client/connection.js";
import { RegistryError } from "../../src/client/registry-error.js";
import { parseTarget } from "../../src/client/target.js";
import { freePort } from "../support/ports.js";
import { Failure, SmallRegistry, until } from "../support/small-registry.js";

let registry: SmallRegistry;
let client: RegistryConnection;

beforeEach(async () => {
  registry = await SmallRegistry.start();
  client = new RegistryConnection(parseTarget(registry.address));
});
afterEach(() => {
  client.close();
  registry.stop();
});

async function failureOf(call: Promise<unknown>): Promise<RegistryError> {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(RegistryError);
  return error as RegistryError;
}

describe("a failed call", () => {
  it("carries everything that the registry said", async () => {
    registry.overrides.getFullSchema = () => {
      throw new Failure("LOAD_PENDING", "not here yet", {
        retryAfterMs: 250,
        substitutes: ["other/tool"],
        metadata: { tool: "a/b" },
      });
    };
    const error = await failureOf(client.getFullSchema({ key: { case: "toolId", value: "a/b" } }));
    expect(error).toMatchObject({
      message: "not here yet",
      code: "UNAVAILABLE",
      reason: "LOAD_PENDING",
      retryAfterMs: 250,
      substitutes: ["other/tool"],
      metadata: { tool: "a/b" },
      transient: true,
    });
  });

  it("lists violations", async () => {
    const violations = [{ field: "server_id", description: "is empty" }];
    registry.refusal = new Failure("INVALID_REQUEST", "server_id: is empty", { violations });
    const error = await failureOf(client.register({}));
    expect(error).toMatchObject({ code: "INVALID_ARGUMENT", reason: "INVALID_REQUEST", violations, transient: false });
  });

  it("names the address when nobody is there, or nobody answers in time", async () => {
    const port = await freePort();
    const nobody = new RegistryConnection(parseTarget(`127.0.0.1:${port}`));
    const away = await failureOf(nobody.getStubs({}));
    expect(away).toMatchObject({
      code: "UNAVAILABLE",
      reason: "",
      message: `the registry at 127.0.0.1:${port} cannot be reached`,
    });
    nobody.close();
    registry.overrides.getStubs = () => new Promise(() => undefined);
    const late = await failureOf(client.getStubs({}, { timeoutMs: 50 }));
    expect(late).toMatchObject({
      code: "DEADLINE_EXCEEDED",
      message: `the registry at ${registry.address} did not answer in time`,
    });
  });

  it("can be cancelled", async () => {
    registry.overrides.getStubs = () => new Promise(() => undefined);
    const cancel = new AbortController();
    const call = client.getStubs({}, { signal: cancel.signal });
    cancel.abort();
    expect((await failureOf(call)).code).toBe("CANCELLED");
    expect((await failureOf(client.getStubs({}, { signal: cancel.signal }))).code).toBe("CANCELLED");
  });
});

describe("a watch", () => {
  it("yields messages, and ends its call when the consumer stops", async () => {
    registry.onWatch = (_request, send) => {
      send({ message: { case: "snapshot", value: { last: true, resumeToken: "t1" } } });
      send({ message: { case: "bookmark", value: { resumeToken: "t2" } } });
    };
    const tokens: string[] = [];
    for await (const { message } of client.watch({ resumeToken: "t0" })) {
      if (message.case !== undefined) tokens.push(message.value.resumeToken);
      if (tokens.length === 2) break;
    }
    expect(tokens).toEqual(["t1", "t2"]);
    expect(registry.watches[0]?.resumeToken).toBe("t0");
    await until(() => registry.streams.size === 0, "the end of the call at the registry");
  });

  it("fails with the registry's reason", async () => {
    registry.onWatch = (_request, _send, fail) =>
      fail(new Failure("RELIST_REQUIRED", "gone", { metadata: { cause: "chain" } }));
    const error = await failureOf(client.watch({}).next());
    expect(error).toMatchObject({ code: "OUT_OF_RANGE", reason: "RELIST_REQUIRED", metadata: { cause: "chain" } });
  });

  it("ends without an error when it is aborted", async () => {
    const ending = new AbortController();
    const next = client.watch({}, ending.signal).next();
    await until(() => registry.watches.length === 1, "the call");
    ending.abort();
    expect(await next).toEqual({ done: true, value: undefined });
  });
});
