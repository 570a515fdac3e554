/** The HTTP listener over TLS, and what it passes on of who calls. */
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { request as httpsRequest } from "node:https";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { EVERYBODY } from "../../src/domain/identity.js";
import { type Authenticator, type Credentials, unauthenticated } from "../../src/rpc/identity/authenticator.js";
import { createDoor } from "../../src/rpc/identity/door.js";
import { type Tls, openTls } from "../../src/rpc/tls.js";
import { Authority, type Certificate, hasOpenssl } from "../support/identity.js";
import { PLAIN_GATE, SERVICE, plainApi, plainToolsets, until } from "./grpc-support.js";
import { failingHttp, startHttpRig } from "./http-support.js";

const QUIET = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const PRINCIPAL = { ...EVERYBODY, id: "somebody" };

describe.skipIf(!hasOpenssl)("the HTTP listener over TLS", () => {
  const folder = mkdtempSync(join(tmpdir(), "toolcrib-tls-"));
  let ours: Authority;
  let client: Certificate;
  let stranger: Certificate;
  let tls: Tls;
  beforeAll(() => {
    ours = new Authority(folder, "ours");
    const { cert, key } = ours.issue("server", "DNS:localhost,IP:127.0.0.1");
    client = ours.issue("client", "URI:spiffe://acme/billing");
    stranger = new Authority(folder, "theirs").issue("stranger", "URI:spiffe://acme/billing");
    tls = openTls({ cert, key, clientCa: ours.cert }, QUIET);
  });
  afterAll(() => {
    tls.close();
    rmSync(folder, { recursive: true, force: true });
  });

  function post(port: number, shown?: Certificate): Promise<number | undefined> {
    const own = shown && { cert: readFileSync(shown.cert), key: readFileSync(shown.key) };
    const headers = { "content-type": "application/json" };
    return new Promise((resolve, reject) => {
      const options = { host: "127.0.0.1", port, path: `/${SERVICE}/GetStubs`, method: "POST", headers, agent: false };
      const request = httpsRequest({ ...options, ca: readFileSync(ours.cert), ...own }, (answer) => {
        answer.resume();
        answer.on("end", () => resolve(answer.statusCode));
      });
      request.on("error", reject);
      request.end("{}");
    });
  }

  it("passes the client's certificate to the door, and says whether it was verified", async () => {
    const seen: (boolean | undefined)[] = [];
    const authenticator: Authenticator = {
      authenticate: ({ certificate }: Credentials) => {
        seen.push(certificate?.verified);
        return PRINCIPAL;
      },
      onChange: () => () => undefined,
      close: () => undefined,
    };
    const rig = await startHttpRig({}, { tls, identified: true, door: createDoor({ registry: plainApi([]), gate: PLAIN_GATE, toolsets: plainToolsets() }, authenticator) });
    for (const shown of [undefined, client, stranger]) expect(await post(rig.server.address.port, shown)).toBe(200);
    expect(seen).toEqual([undefined, true, false]);
    await rig.server.close();
  });

  it("ends at once although a peer never finishes its handshake", async () => {
    const rig = await startHttpRig({}, { tls, graceMs: 600_000 });
    expect(await post(rig.server.address.port)).toBe(200);
    const silent = connect(rig.server.address.port, "127.0.0.1");
    silent.on("error", () => {});
    await once(silent, "connect");
    await rig.server.close();
  });
});

describe("a credential over HTTP", () => {
  it("is asked for before the body is read, and a watch ends when it ends", async () => {
    let good = true;
    const listeners = new Set<() => void>();
    const authenticator: Authenticator = {
      authenticate: ({ authorization }) => {
        if (good && authorization === "Bearer t") return PRINCIPAL;
        throw unauthenticated("the token is not known here");
      },
      onChange: (listener) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
      close: () => undefined,
    };
    let admitted = 0;
    const api = {
      ...plainApi([]),
      watch: async () => {
        admitted++;
        return { drained: () => undefined, close: () => undefined };
      },
    };
    const rig = await startHttpRig({}, { identified: true, door: createDoor({ registry: api, gate: PLAIN_GATE, toolsets: plainToolsets() }, authenticator) });
    const http = rig.client("gRPC-Web");
    expect(await failingHttp(http.getStubs({}))).toMatchObject({ code: "UNAUTHENTICATED", reason: "UNAUTHENTICATED" });
    const headers = { authorization: "Bearer t" };
    await http.getStubs({}, { headers });
    const ended = failingHttp(
      (async () => {
        for await (const _ of http.watch({}, { headers }));
      })(),
    );
    await until(() => admitted === 1 && listeners.size === 1, "admitted");
    good = false;
    for (const listener of [...listeners]) listener();
    expect(await ended).toMatchObject({ code: "UNAUTHENTICATED", reason: "UNAUTHENTICATED" });
    expect(listeners.size).toBe(0);
    await rig.server.close();
  });
});
