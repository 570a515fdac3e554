import { afterEach, expect, it } from "vitest";
import { registerStanding } from "../../../src/cli/register.js";
import { RegistryConnection } from "../../../src/client/connection.js";
import { parseTarget } from "../../../src/client/target.js";
import { Transport } from "../../../src/gen/toolcrib/v1/server_pb.js";
import { Failure, SmallRegistry } from "../../support/small-registry.js";

let registry: SmallRegistry | undefined;
afterEach(() => registry?.stop());

async function register(refusals: number, failure: Failure): Promise<{ asked: number; reason: string }> {
  registry = await SmallRegistry.start();
  let asked = 0;
  registry.overrides.register = () => {
    if (++asked <= refusals) throw failure;
    return { revision: "r1" };
  };
  const connection = new RegistryConnection(parseTarget(registry.address));
  const server = { serverId: "s", endpoint: "http://127.0.0.1:9/mcp", title: "", tags: [], transport: Transport.STREAMABLE_HTTP };
  try {
    const answer = await registerStanding(connection, "", server);
    return { asked, reason: answer.revision };
  } catch (error) {
    return { asked, reason: (error as { reason: string }).reason };
  } finally {
    connection.close();
  }
}

const busy = (retryAfterMs: number) => new Failure("OVERLOADED", "too much to do", { retryAfterMs });

it("asks again when a busy registry says to, a few times", async () => {
  expect(await register(2, busy(5))).toEqual({ asked: 3, reason: "r1" });
  expect(await register(100, busy(5))).toEqual({ asked: 5, reason: "OVERLOADED" });
});

it("does not wait for what takes long or is no matter of waiting", async () => {
  expect(await register(1, busy(60_000))).toEqual({ asked: 1, reason: "OVERLOADED" });
  expect(await register(1, new Failure("FORBIDDEN", "no", { retryAfterMs: 5 }))).toEqual({ asked: 1, reason: "FORBIDDEN" });
});
