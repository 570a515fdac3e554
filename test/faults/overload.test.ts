/** A real flood of Registers on a real registry: some are refused with the time to come back, and no renewal is. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { keepRegistered } from "../../src/client/keep.js";
import { parseTarget } from "../../src/client/target.js";
import { declared, RemoteRegistry, startRegistry } from "../support/registry.js";
import { eventually } from "../support/upstream.js";

const FLOOD = fileURLToPath(new URL("../fixtures/load/register-flood.mjs", import.meta.url));
const TOOL = { name: "a", inputSchema: { type: "object" } };

interface FloodEnd {
  readonly ended: Readonly<Record<string, number>>;
  readonly retryMs: number | undefined;
}

/** Floods until `end`, which answers how the calls ended. */
function flood(address: string, inFlight: number, megabytes: number): { end(): Promise<FloodEnd> } {
  const child = spawn(process.execPath, [FLOOD, address, String(inFlight), String(megabytes)], { stdio: ["pipe", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  let text = "";
  child.stdout.on("data", (chunk: Buffer) => void (text += chunk.toString()));
  const exited = once(child, "exit");
  return {
    async end() {
      child.stdin.end();
      await exited;
      return JSON.parse(text) as FloodEnd;
    },
  };
}

it("a flood of Registers is shed with the time to come back; every renewal and read is served, no lease is lost, and all get in at last", async () => {
  const registry = await startRegistry({ store: "memory", args: ["--max-lateness", "200"] });
  const remote = new RemoteRegistry(registry.grpc);
  const leaseTtl = { seconds: 10 };
  const granted = await Promise.all(["one", "two", "three"].map((id) => remote.call("register", declared(id, [TOOL], { leaseTtl }))));
  const leases = granted.map(({ lease, setDigest }) => ({ leaseId: lease.leaseId, setDigest }));
  const metric = async (name: string): Promise<number> => {
    const text = await (await fetch(`${registry.ops}/metrics`)).text();
    return Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, "m").exec(text)?.[1] ?? 0);
  };

  const storm = flood(registry.grpc, 8, 3);
  let renewals = 0;
  // Renews and reads as long as the flood is refused, so that both happen while the replica sheds.
  await eventually(
    async () => {
      const { results } = await remote.call("renew", { leases }, 30_000);
      expect(results.map((r: { state: string }) => r.state)).toEqual(leases.map(() => "STATE_OK"));
      expect(await remote.toolIds({ filter: { serverIds: ["one", "two", "three"] } })).toHaveLength(3);
      renewals++;
      return metric("toolcrib_shed_total");
    },
    (shed) => shed >= 20 && renewals > 1,
    60_000,
  );
  // Whoever holds a lease goes on renewing it, however long the rest takes.
  const beat = setInterval(() => void remote.call("renew", { leases }, 30_000).catch(() => undefined), 1_000);
  onTestFinished(() => clearInterval(beat));
  // A registrar that starts just now waits as long as it is told to, and needs nobody's help.
  const events: string[] = [];
  const target = parseTarget(registry.grpc);
  const late = keepRegistered(target, async () => [{ definition: Buffer.from(JSON.stringify(TOOL)) }], {
    serverId: "late",
    onEvent: (event) => void events.push(event.type),
  });
  onTestFinished(() => late.close());
  const { ended, retryMs } = await storm.end();
  expect(ended["OVERLOADED"], JSON.stringify(ended)).toBeGreaterThanOrEqual(20);
  expect(Object.keys(ended).sort()).toEqual(["OK", "OVERLOADED"]);
  expect(retryMs).toBeGreaterThanOrEqual(2_000);
  expect(renewals).toBeGreaterThan(1);
  await eventually(() => events, (seen) => seen.includes("registered"), 60_000);
  await eventually(() => metric("toolcrib_overload_level"), (level) => level === 0, 60_000);
  await remote.call("register", declared("afterwards", [TOOL], { leaseTtl }));
  const { results } = await remote.call("renew", { leases });
  expect(results.map((r: { state: string }) => r.state)).toEqual(leases.map(() => "STATE_OK"));
  expect(await metric("toolcrib_lease_expirations_total")).toBe(0);
  const said = registry.logs().filter((l) => /has too much to do|has less to do/.test(String(l["msg"])));
  expect(said[0]).toMatchObject({ level: "warn" });
  await eventually(
    () => registry.logs().filter((l) => l["reason"] === "OVERLOADED").length,
    (refusals) => refusals >= (ended["OVERLOADED"] as number),
  );
}, 180_000);
