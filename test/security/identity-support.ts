/** One registry process that knows its callers, asked over both listeners, and what each refusal must look like. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fromBinary } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { expect } from "vitest";
import type { ErrorReasonName, StatusName } from "../../src/domain/reasons.js";
import { ErrorInfoSchema } from "../../src/gen/google/rpc/error_details_pb.js";
import { RegistryService } from "../../src/gen/toolcrib/v1/registry_service_pb.js";
import { failing, type ReadError } from "../integration/grpc-support.js";
import { failingHttp, WAYS } from "../integration/http-support.js";
import { AUDIENCE, bearer, entryOf, ISSUER, Issuer, newToken, type TokenEntry, writeTokens } from "../support/identity.js";
import { declared, methodOf, type RegistryProcess, RemoteRegistry, startRegistry } from "../support/registry.js";
import { eventually } from "../support/upstream.js";
import { isNews, type LogLine } from "./support.js";

export interface Refused {
  readonly code: StatusName;
  readonly reason: ErrorReasonName;
  readonly says: RegExp;
}

/** As both listeners tell it. */
interface Told {
  readonly code: string;
  readonly reason: string;
  readonly message: string;
}

const LOUD = new Set(["info", "warn", "error", "fatal"]);

export class IdentityTarget {
  readonly folder: string;
  readonly tokensFile: string;
  readonly tokens = {
    root: newToken(),
    reader: newToken(),
    alice: newToken(),
    bob: newToken(),
    operator: newToken(),
    tenantB: newToken(),
    expired: newToken(),
  };
  registry!: RegistryProcess;
  remote!: RemoteRegistry;
  issuer!: Issuer;
  readonly leases: Record<string, string> = {};
  #barriers = 0;

  private constructor() {
    this.folder = mkdtempSync(join(tmpdir(), "toolcrib-who-"));
    this.tokensFile = join(this.folder, "tokens.json");
  }

  /** Namespace `a` holds alice-one (alice) and bob-one (bob), namespace `b` holds alice-one, shared and secret (tenantB). */
  static async start(): Promise<IdentityTarget> {
    const target = new IdentityTarget();
    target.issuer = await Issuer.create();
    writeFileSync(join(target.folder, "jwks.json"), JSON.stringify(target.issuer.jwks));
    target.write(target.entries());
    const args = [
      ...["--tokens-file", target.tokensFile, "--jwt-jwks", join(target.folder, "jwks.json")],
      ...["--jwt-issuer", ISSUER, "--jwt-audience", AUDIENCE, "--jwt-algorithms", "ES256,RS256"],
    ];
    target.registry = await startRegistry({ keep: true, dataDir: join(target.folder, "data"), args });
    target.remote = new RemoteRegistry(target.registry.grpc, true);
    await target.seed("alice", "a", "alice-one");
    await target.seed("bob", "a", "bob-one");
    for (const serverId of ["alice-one", "shared", "secret"]) await target.seed("tenantB", "b", serverId);
    return target;
  }

  entries(): TokenEntry[] {
    const { root, reader, alice, bob, operator, tenantB, expired } = this.tokens;
    return [
      entryOf(root, "root", [{ role: "operator", namespaces: ["*"] }]),
      entryOf(reader, "reader", [{ role: "reader", namespaces: ["a"] }]),
      entryOf(alice, "alice", [{ role: "registrant", namespaces: ["a"], servers: ["alice-*", "shared"] }]),
      entryOf(bob, "bob", [{ role: "registrant", namespaces: ["a"] }]),
      entryOf(operator, "operator", [{ role: "operator", namespaces: ["a"] }]),
      entryOf(tenantB, "tenant-b", [{ role: "registrant", namespaces: ["b"] }]),
      entryOf(expired, "expired", [{ role: "operator", namespaces: ["*"] }], new Date(Date.now() - 1_000)),
    ];
  }

  write(entries: readonly TokenEntry[]): void {
    writeTokens(this.tokensFile, entries);
  }

  async stop(): Promise<void> {
    this.remote.client.close();
    await this.registry.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }

  async seed(who: keyof IdentityTarget["tokens"], namespace: string, serverId: string): Promise<void> {
    const request = server(serverId, { namespace });
    const { lease } = await this.call("register", request, this.tokens[who]);
    this.leases[`${namespace}/${serverId}`] = lease.leaseId;
  }

  call(method: string, request: object, token: string | undefined): Promise<any> {
    return this.remote.call(method, request, 15_000, bearer(token));
  }

  /** Over gRPC and over HTTP: code, reason, words; one log line; nothing changed; the credential nowhere. */
  async refuses(method: string, request: object, authorization: string | undefined, expected: Refused): Promise<void> {
    const ways = [() => this.overGrpc(method, request, authorization), () => this.overHttp(method, request, authorization)];
    for (const way of ways) {
      const before = await this.state();
      const { result: told, lines } = await this.logged(way);
      expect(told).toMatchObject({ code: expected.code, reason: expected.reason });
      expect(told.message).toMatch(expected.says);
      expect(lines, "log lines of this refusal").toHaveLength(1);
      expect(lines[0]).toMatchObject({ level: "info", code: expected.code, reason: expected.reason, method: methodOf(method).path.slice(1) });
      expect(await this.state(), "what the registry holds").toEqual(before);
      const secret = authorization?.split(" ").pop() ?? "";
      if (secret.length > 8) expect(`${JSON.stringify(lines)}${JSON.stringify(told)}`).not.toContain(secret);
    }
  }

  private async overGrpc(method: string, request: object, authorization: string | undefined): Promise<Told> {
    const metadata = bearer(undefined);
    if (authorization !== undefined) metadata.set("authorization", authorization);
    return failing(this.remote.call(method, request, 15_000, metadata));
  }

  private async overHttp(method: string, request: object, authorization: string | undefined): Promise<Told> {
    const response = await this.post(method, request, authorization);
    const error = (await response.json()) as { code?: string; message?: string; details?: { type: string; value: string }[] };
    expect(response.status, JSON.stringify(error)).toBeGreaterThanOrEqual(400);
    const detail = error.details?.find((d) => d.type === "google.rpc.ErrorInfo");
    const info = fromBinary(ErrorInfoSchema, Buffer.from(detail?.value ?? "", "base64"));
    return { code: (error.code ?? "").toUpperCase(), reason: info.reason, message: error.message ?? "" };
  }

  post(method: string, request: object, authorization: string | undefined): Promise<Response> {
    const headers = { "content-type": "application/json", ...(authorization !== undefined && { authorization }) };
    const body = JSON.stringify(request, (_key, value: unknown) =>
      isBuffer(value) ? Buffer.from(value.data).toString("base64") : isSpan(value) ? `${value.seconds}s` : value,
    );
    return fetch(`${this.registry.http}${methodOf(method).path}`, { method: "POST", headers, body });
  }

  async logged<T>(work: () => Promise<T>): Promise<{ result: T; lines: readonly LogLine[] }> {
    const from = await this.#barrier();
    const result = await work();
    const until = await this.#barrier();
    const lines = this.registry.logs();
    const at = (name: string): number => lines.findIndex((l) => String(l["detail"]).endsWith(name));
    return { result, lines: lines.slice(at(from) + 1, at(until)).filter((l) => LOUD.has(String(l["level"])) && !isNews(l)) };
  }

  async #barrier(): Promise<string> {
    const serverId = `barrier-${++this.#barriers}.end`;
    await failing(this.call("getServer", { namespace: "a", serverId }, this.tokens.root));
    await eventually(() => this.registry.output().includes(serverId) && this.registry.output().endsWith("\n"), (seen) => seen);
    return serverId;
  }

  /** Everything there is, as an operator of all sees it. */
  async state(): Promise<unknown> {
    const seen = [];
    for (const namespace of ["a", "b"]) {
      const { stubs, revision } = await this.call("getStubs", { namespace }, this.tokens.root);
      const { servers } = await this.call("listServers", { namespace }, this.tokens.root);
      seen.push({ revision, stubs, servers });
    }
    return seen;
  }

  watch(request: object, token: string) {
    return this.remote.watch(request, bearer(token));
  }

  /** The same over HTTP, by the official client. */
  watchHttp(request: object, token: string | undefined): HttpWatch {
    return new HttpWatch(this.registry.http, request, token);
  }
}

export class HttpWatch {
  /** The messages heard so far, as JSON. */
  readonly heard: string[] = [];
  /** How the registry ended it. */
  readonly ended: Promise<Omit<ReadError, "detailBytes">>;

  constructor(url: string, request: object, token: string | undefined) {
    const client = createClient(RegistryService, WAYS["Connect JSON"](url));
    const headers = { ...(token !== undefined && { authorization: `Bearer ${token}` }) };
    this.ended = failingHttp(
      (async () => {
        for await (const { message } of client.watch(request, { headers }))
          this.heard.push(JSON.stringify(message, (_key, value: unknown) => (typeof value === "bigint" ? String(value) : value)));
      })(),
    );
    this.ended.catch(() => undefined);
  }

  async ready(): Promise<void> {
    await eventually(() => this.heard.length, (count) => count > 0);
  }
}

export function server(serverId: string, more: object = {}): object {
  const tool = { name: "tool", description: "Does something.", inputSchema: { type: "object" } };
  return declared(serverId, [tool], { leaseTtl: { seconds: 3_600 }, ...more });
}



function isBuffer(value: unknown): value is { data: number[] } {
  return typeof value === "object" && value !== null && (value as { type?: unknown }).type === "Buffer";
}

function isSpan(value: unknown): value is { seconds: number } {
  return typeof value === "object" && value !== null && typeof (value as { seconds?: unknown }).seconds === "number";
}
