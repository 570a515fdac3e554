import { once } from "node:events";
import { connect } from "node:net";
import * as grpc from "@grpc/grpc-js";
import { afterEach, describe, expect, it } from "vitest";
import { type Rig, call, callRaw, failing, SERVICE, startRig, until } from "./grpc-support.js";

let rig: Rig | undefined;
afterEach(async () => {
  await rig?.stop();
  rig = undefined;
});

/** A grace far longer than the test may take: what ends within the test ended by itself. */
const LONG_GRACE = { graceMs: 600_000 };

describe("startGrpc", () => {
  it("says in one sentence that a port is taken, or that a host does not exist", async () => {
    rig = await startRig();
    const address = { host: "127.0.0.1", port: rig.server.address.port };
    await expect(startRig({}, { address })).rejects.toThrow(
      /^The gRPC address 127\.0\.0\.1:\d+ is taken.*--grpc-address.*\.$/,
    );
    await expect(startRig({}, { address: { host: "203.0.113.1", port: 1 } })).rejects.toThrow(
      /cannot be listened on \(E\w+\).*--grpc-address/,
    );
  });
});

describe("shutdown", () => {
  it("ends at once although clients idle, a raw connection is silent and watches are open", async () => {
    rig = await startRig({}, LONG_GRACE);
    const idle = [rig.client(), rig.client()];
    for (const client of idle) await call(client, "GetStubs", {});
    const silent = connect(rig.server.address.port, "127.0.0.1");
    silent.on("error", () => {});
    await once(silent, "connect");
    const streams = [rig.client()["Watch"]({}), rig.client()["Watch"]({})];
    const ended = streams.map((stream) => {
      stream.on("data", () => {});
      return failing(new Promise((_, reject) => stream.on("error", reject)));
    });
    await until(() => rig?.watches.length === 2, "watches open");
    await rig.server.close();
    for (const end of await Promise.all(ended)) {
      expect(end).toMatchObject({ code: "UNAVAILABLE", reason: "DRAINING" });
      expect(end.retryMs).toBeGreaterThanOrEqual(100);
    }
    expect(rig.watches.map((w) => w.closedTimes)).toEqual([1, 1]);
    silent.destroy();
  });

  it("lets calls under way finish, refuses new ones, and still serves what keeps a lease", async () => {
    let answer = (): void => {};
    const gate = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const position = { partition: 0, revision: 1, chain: "1" };
    rig = await startRig(
      {
        stubs: async () => {
          await gate;
          return { frames: [], nextPageToken: "", position, notModified: false, stale: false };
        },
      },
      LONG_GRACE,
    );
    const client = rig.client();
    const underWay = call(client, "GetStubs", {});
    await until(
      async () =>
        (await rig!.metrics.registry.metrics()).includes('in_flight{method="toolcrib.v1.RegistryService/GetStubs"} 1'),
      "under way",
    );
    rig.server.drain();
    for (const method of ["Register", "GetStubs", "GetFullSchema", "BatchGetFullSchemas", "ListServers", "GetServer"]) {
      expect(await failing(call(client, method, {})), method).toMatchObject({
        code: "UNAVAILABLE",
        reason: "DRAINING",
      });
    }
    await call(client, "Renew", {});
    await call(client, "Deregister", { lease_id: "l" });
    const closing = rig.server.close();
    answer();
    expect((await underWay).revision).not.toBe("");
    await closing;
  });

  it("ends when the grace is over although a call never does", async () => {
    rig = await startRig({ stubs: () => new Promise(() => {}) }, { graceMs: 30 });
    const raw = rig.raw();
    const stuck = callRaw(raw, `/${SERVICE}/GetStubs`, Buffer.alloc(0)).catch((e: grpc.ServiceError) => e.code);
    await until(
      async () =>
        (await rig!.metrics.registry.metrics()).includes('in_flight{method="toolcrib.v1.RegistryService/GetStubs"} 1'),
      "under way",
    );
    await rig.server.close();
    expect(await stuck).not.toBe(grpc.status.OK);
  });
});
