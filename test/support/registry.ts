/** Real registries as real processes, and a client that nobody here wrote: grpc-js with the .proto loaded at run time. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  type Client,
  type ClientReadableStream,
  credentials,
  loadPackageDefinition,
  Metadata,
  type ServiceDefinition,
  type ServiceError,
} from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { onTestFinished } from "vitest";
import { eventually } from "./upstream.js";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

export interface RegistryProcess {
  /** host:port of the gRPC listener. */
  readonly grpc: string;
  /** http://host:port of the HTTP listener. */
  readonly http: string;
  /** http://host:port of the ops listener. */
  readonly ops: string;
  readonly dataDir: string;
  readonly child: ChildProcess;
  /** All it wrote so far, both streams. */
  output(): string;
  /** Its log lines as objects. */
  logs(): Record<string, unknown>[];
  /** Answers the exit code. */
  stop(): Promise<number | null>;
  /** kill -9. */
  kill(): Promise<void>;
}

export interface RegistryOptions {
  /** `embedded` by default. */
  readonly store?: string;
  readonly dataDir?: string;
  /** 0 by default: any. */
  readonly port?: number;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** For `beforeAll`: the caller kills it, and gives a `dataDir` that it removes. */
  readonly keep?: boolean;
  /** A command that starts the registry's own, given after it. */
  readonly through?: readonly string[];
  /** Answers as soon as it listens, ready or not. */
  readonly unready?: boolean;
}

/** In what it prints when it is up, and when it waits for its store. */
const LISTENS = /gRPC (\S+), HTTP (\S+), ops (\S+), store/;

/** Started and ready; killed when the test ends. */
export async function startRegistry(options: RegistryOptions = {}): Promise<RegistryProcess> {
  const dataDir = options.dataDir ?? (await temporaryFolder());
  const args = [
    join(ROOT, "dist/main.js"),
    ...["--grpc-address", `127.0.0.1:${options.port ?? 0}`, "--ops-address", "127.0.0.1:0", "--http-address", "127.0.0.1:0"],
    ...["--data-dir", dataDir, "--store", options.store ?? "embedded"],
    ...(options.args ?? []),
  ];
  const [command = process.execPath, ...before] = [...(options.through ?? []), process.execPath];
  const child = spawn(command, [...before, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    // A machine that is busy with other tests is no overload that this test is about.
    env: { ...process.env, TOOLCRIB_MAX_LATENESS: "0", ...options.env },
  });
  let text = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => void (text += chunk.toString()));
  // "close" and not "exit": its last lines have been read by then.
  const exited = new Promise<number | null>((resolve) => child.once("close", (code) => resolve(code)));
  const end = async (signal: NodeJS.Signals): Promise<number | null> => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal);
    return exited;
  };
  if (!options.keep) onTestFinished(async () => void (await end("SIGKILL")));
  const started = await eventually(
    () => ({ up: LISTENS.exec(text), gone: child.exitCode !== null }),
    (s) => s.up !== null || s.gone,
  );
  if (!started.up) throw new Error(`the registry did not start:\n${text}`);
  const ops = started.up[3] as string;
  if (!options.unready) {
    await eventually(
      async () => (await fetch(`${ops}/readyz`).catch(() => undefined))?.status,
      (status) => status === 200,
    );
  }
  return {
    grpc: started.up[1] as string,
    http: started.up[2] as string,
    ops,
    dataDir,
    child,
    output: () => text,
    logs: () =>
      text
        .split("\n")
        .filter((l) => l.startsWith("{"))
        .map((l) => JSON.parse(l) as Record<string, unknown>),
    stop: () => end("SIGTERM"),
    kill: async () => void (await end("SIGKILL")),
  };
}

/** Removed when the test ends. */
export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "toolcrib-test-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

const loaded = loadPackageDefinition(
  loadSync(["toolcrib/v1/registry_service.proto", "toolcrib/v1/gate_service.proto", "toolcrib/v1/toolset_service.proto", "toolcrib/v1/admin_service.proto"], {
    includeDirs: [join(ROOT, "proto")],
    keepCase: false,
    longs: Number,
    enums: String,
    defaults: true,
    oneofs: true,
  }),
) as unknown as {
  toolcrib: {
    v1: {
      RegistryService: { new (address: string, c: unknown, options: object): Client; service: ServiceDefinition };
      GateService: { service: ServiceDefinition };
      ToolsetService: { service: ServiceDefinition };
      AdminService: { service: ServiceDefinition };
    };
  };
};

const { RegistryService, GateService, ToolsetService, AdminService } = loaded.toolcrib.v1;

const asIs = (bytes: Buffer): Buffer => bytes;

/** How a unary method of any service is called: `isolateServer` → `/toolcrib.v1.AdminService/IsolateServer`. */
export function methodOf(name: string) {
  const rpc = `${name.charAt(0).toUpperCase()}${name.slice(1)}`;
  const services = [RegistryService, GateService, ToolsetService, AdminService];
  const found = services.map(({ service }) => service[rpc]).find((method) => method !== undefined);
  if (!found) throw new Error(`no such method: ${name}`);
  return found;
}

/** Hears the bytes of what a client asks and gets. */
export interface Tap {
  call(method: string, request: Uint8Array): { answered(answer: Uint8Array): void; failed(error: unknown): void };
  watch(request: Uint8Array): { message(bytes: Uint8Array): void; failed(error: unknown): void; left(): void };
}

/** One method name → call; answers are plain objects as proto-loader makes them. */
export class RemoteRegistry {
  /** Makes the tap of each new client, by the address of its registry. */
  static tapped: ((address: string) => Tap) | undefined;
  readonly client: Client;
  readonly #tap: Tap | undefined;

  /** Closed when the test ends; with `keep` the caller closes `client`. */
  constructor(address: string, keep = false) {
    // A connection of its own, as between processes; grpc-js would share one among all clients of an address.
    const options = { "grpc.use_local_subchannel_pool": 1 };
    this.client = new RegistryService(address, credentials.createInsecure(), options);
    this.#tap = RemoteRegistry.tapped?.(address);
    if (!keep) onTestFinished(() => this.client.close());
  }

  /** Rejects with grpc-js's ServiceError. */
  call(method: string, request: object = {}, deadlineMs = 15_000, metadata?: Metadata): Promise<any> {
    const { path, requestSerialize, responseDeserialize } = methodOf(method);
    return new Promise((resolve, reject) => {
      const bytes = requestSerialize(request);
      const ear = this.#tap?.call(method, bytes);
      const done = (error: ServiceError | null, answer: Buffer | undefined) => {
        if (error) ear?.failed(error);
        else if (answer) ear?.answered(answer);
        return error ? reject(error) : resolve(responseDeserialize(answer as Buffer));
      };
      const options = { deadline: Date.now() + deadlineMs };
      const sent = metadata ?? new Metadata();
      this.client.makeUnaryRequest(path, asIs, asIs, bytes, sent, options, done);
    });
  }

  async toolIds(request: object = {}): Promise<string[]> {
    const out: string[] = [];
    let pageToken = "";
    do {
      const page = await this.call("getStubs", { ...request, pageToken });
      out.push(...page.stubs.map((s: { toolId: string }) => s.toolId));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    return out;
  }

  watch(request: object = {}, metadata?: Metadata): RemoteWatch {
    const { path, requestSerialize, responseDeserialize } = methodOf("watch");
    const bytes = requestSerialize(request);
    const ear = this.#tap?.watch(bytes);
    const read = (message: Buffer): unknown => {
      ear?.message(message);
      return responseDeserialize(message);
    };
    const call = this.client.makeServerStreamRequest(path, asIs, read, bytes, metadata ?? new Metadata());
    call.on("error", (error) => ear?.failed(error));
    return new RemoteWatch(call, () => ear?.left());
  }
}

/** A watch that keeps all it is told. */
export class RemoteWatch {
  readonly stubs: { toolId: string; digest: string }[] = [];
  readonly events: { type: string; toolId: string; serverId: string; oldDigest: string; newDigest: string }[] = [];
  bookmarks = 0;
  snapshotEnded = false;
  token = "";
  /** That of the last message: another replica asked with it as `minRevision` knows what this watch was told. */
  revision = "";
  error: ServiceError | undefined;

  constructor(
    readonly stream: ClientReadableStream<unknown>,
    private readonly onCancel: () => void = () => undefined,
  ) {
    stream.on("data", (m: any) => this.#take(m));
    stream.on("error", (error: ServiceError) => void (this.error = error));
    onTestFinished(() => this.stream.cancel());
  }

  #take(m: any): void {
    const part = m[m.message];
    if (m.message === "snapshot") {
      this.stubs.push(...part.stubs);
      if (part.last) this.snapshotEnded = true;
    } else if (m.message === "change") {
      for (const e of part.events) this.events.push({ ...e, type: e.type.replace("EVENT_TYPE_", "") });
    } else this.bookmarks++;
    if (part.resumeToken) this.token = part.resumeToken;
    if (part.revision) this.revision = part.revision;
  }

  /** `TYPE tool_id` (or server_id) of all events so far. */
  get told(): string[] {
    return this.events.map((e) => `${e.type} ${e.toolId || e.serverId}`);
  }

  ready(): Promise<boolean> {
    return eventually(
      () => this.snapshotEnded,
      (ended) => ended,
    );
  }

  cancel(): void {
    this.onCancel();
    this.stream.cancel();
  }
}

/** A Register of tools given as definitions, inline. */
export function declared(serverId: string, tools: readonly object[], more: object = {}): object {
  return {
    serverId,
    instanceId: "instance-1",
    declared: { tools: tools.map((t) => ({ definition: Buffer.from(JSON.stringify(t)) })) },
    ...more,
  };
}
