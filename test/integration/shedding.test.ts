/** A shed Register is refused before anybody reads its message, alike over gRPC and in every way over HTTP. */
import { Metadata } from "@grpc/grpc-js";
import { afterEach, expect, it } from "vitest";
import { Fault } from "../../src/domain/fault.js";
import { callRaw, failing, type Rig, SERVICE, startRig } from "./grpc-support.js";
import { ALL_WAYS, failingHttp, type HttpRig, startHttpRig } from "./http-support.js";

let rigs: { grpc: Rig; http: HttpRig } | undefined;
afterEach(async () => {
  await Promise.all([rigs?.grpc.stop(), rigs?.http.server.close()]);
  rigs = undefined;
});

it("a shed Register of 3 MB is refused with its facts and one log line; the connection goes on to serve renewals", async () => {
  let handled = 0;
  const api = { register: () => Promise.reject(new Error(`handled ${++handled} times`)) };
  const refusal = (path: string) =>
    path.endsWith("/Register") ? new Fault("OVERLOADED", "not now", { metadata: { shed: "register", level: "1" }, retryAfterMs: 2_500 }) : undefined;
  rigs = { grpc: await startRig(api, { refusal }), http: await startHttpRig(api, { refusal }) };
  const { grpc, http } = rigs;
  const expected = { code: "UNAVAILABLE", reason: "OVERLOADED", retryMs: 2_500, metadata: { shed: "register", level: "1" } };
  // Nothing that could be read as a message: whoever parsed it would say MALFORMED_MESSAGE.
  const noMessage = Buffer.alloc(3 * 1024 * 1024, 0xff);
  const raw = grpc.raw();
  for (let i = 0; i < 10; i++) expect(await failing(callRaw(raw, `/${SERVICE}/Register`, noMessage, new Metadata()))).toMatchObject(expected);
  await callRaw(raw, `/${SERVICE}/Renew`, Buffer.alloc(0), new Metadata());
  const large = { serverId: "s", offer: { case: "declared" as const, value: { tools: [{ definition: noMessage.subarray(0, 2 << 20) }] } } };
  for (const way of ALL_WAYS) {
    const client = http.client(way);
    expect(await failingHttp(client.register(large)), way).toMatchObject(expected);
    await client.renew({});
  }
  await expect.poll(() => [grpc.log.length, http.log.length, handled]).toEqual([10, ALL_WAYS.length, 0]);
  for (const { fields } of [...grpc.log, ...http.log]) expect(fields).toMatchObject({ code: "UNAVAILABLE", reason: "OVERLOADED", method: `${SERVICE}/Register` });
  await expect.poll(() => grpc.metrics.registry.metrics()).toContain(`toolcrib_rpc_requests_total{method="${SERVICE}/Register",code="UNAVAILABLE"} 10`);
});
