import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import * as grpc from "@grpc/grpc-js";
import { service as healthService } from "grpc-health-check";
import { afterEach, describe, expect, it } from "vitest";
import { type Rig, SERVICE, startRig, until } from "./grpc-support.js";

const BUF = fileURLToPath(new URL("../../node_modules/.bin/buf", import.meta.url));
const run = promisify(execFile);

let rig: Rig | undefined;
afterEach(async () => {
  await rig?.stop();
  rig = undefined;
});

async function bufCurl(...args: string[]): Promise<string> {
  const { stdout } = await run(BUF, ["curl", "--http2-prior-knowledge", "--protocol", "grpc", ...args]);
  return stdout;
}

describe("reflection", () => {
  it.each(["grpc-v1", "grpc-v1alpha"])("buf curl lists, describes and calls through %s", async (protocol) => {
    rig = await startRig();
    const base = `http://${rig.target}`;
    const args = ["--reflect", "--reflect-protocol", protocol];
    const methods = await bufCurl(...args, "--list-methods", base);
    expect(methods).toContain(`${SERVICE}/Watch`);
    expect(methods).toContain("toolcrib.v1.AdminService/IsolateServer");
    expect(methods).toContain("toolcrib.v1.GateService/FindTools");
    expect(methods).toContain("grpc.health.v1.Health/Check");
    const answer = await bufCurl(...args, "--data", '{"tool_id":"s/t"}', `${base}/${SERVICE}/GetFullSchema`);
    expect(JSON.parse(answer)).toMatchObject({
      schema: { toolId: "s/t", freshness: "FRESHNESS_CACHED", fetchedAt: "2023-11-14T22:13:20.123Z" },
    });
    const health = await bufCurl(...args, "--data", "{}", `${base}/grpc.health.v1.Health/Check`);
    expect(JSON.parse(health)).toEqual({ status: "NOT_SERVING" });
  });

  it("lets buf curl show the details of an error", async () => {
    rig = await startRig();
    const url = `http://${rig.target}/${SERVICE}/GetStubs`;
    const failed = await bufCurl("--reflect", "--data", '{"page_size":-1}', url).catch(
      (e: { stderr: string }) => e.stderr,
    );
    expect(JSON.parse(String(failed))).toMatchObject({
      code: "invalid_argument",
      details: [{ type: "google.rpc.ErrorInfo" }, { type: "google.rpc.BadRequest" }],
    });
  });
});

interface HealthAnswer {
  readonly status: string;
}

function healthClient(target: string): grpc.Client & Record<string, any> {
  const Client = grpc.makeGenericClientConstructor(healthService as grpc.ServiceDefinition, "Health");
  return new Client(target, grpc.credentials.createInsecure(), { "grpc.use_local_subchannel_pool": 1 });
}

describe("grpc.health.v1", () => {
  it("follows readiness for the server and the service, and knows no other", async () => {
    rig = await startRig();
    const client = healthClient(rig.target);
    const check = (service: string) =>
      new Promise<string>((resolve, reject) =>
        client["check"]({ service }, (error: Error | null, answer: HealthAnswer) =>
          error ? reject(error) : resolve(answer.status),
        ),
      );
    expect(await check("")).toBe("NOT_SERVING");
    rig.server.setReady(true);
    expect(await check("")).toBe("SERVING");
    expect(await check(SERVICE)).toBe("SERVING");
    expect(await check("toolcrib.v1.AdminService")).toBe("SERVING");
    await expect(check("other")).rejects.toMatchObject({ code: grpc.status.NOT_FOUND });

    const seen: string[] = [];
    let ended: grpc.ServiceError | undefined;
    const watch = client["watch"]({ service: SERVICE });
    watch.on("data", (answer: HealthAnswer) => seen.push(answer.status));
    watch.on("error", (error: grpc.ServiceError) => {
      ended = error;
    });
    await until(() => seen.length === 1, "first status");
    rig.server.drain();
    await until(() => ended !== undefined, "health watch ended");
    expect(seen).toEqual(["SERVING", "NOT_SERVING"]);
    expect(ended?.code).toBe(grpc.status.UNAVAILABLE);
    rig.server.setReady(true);
    expect(await check("")).toBe("NOT_SERVING");
    client.close();
  });
});
