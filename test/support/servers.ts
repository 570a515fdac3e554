/** Real MCP server processes for tests. */
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";

export interface SeenRequest {
  /** Of the fixture's own clock; absent from fixtures that do not say. */
  readonly atMs?: number;
  readonly http: string;
  /** JSON-RPC method, null for GET and DELETE. */
  readonly method: string | null;
  readonly params: Record<string, unknown> | null;
  readonly headers: Record<string, string>;
}

export interface Fixture {
  /** The MCP endpoint. */
  readonly url: string;
  readonly pid: number;
  /** POST /control; answers what the fixture answers. */
  control(body: object): Promise<Record<string, unknown>>;
  /** Every MCP request received so far. */
  requests(): Promise<readonly SeenRequest[]>;
  /** Ends the process and resolves when it is gone. Safe to call twice. */
  stop(): Promise<void>;
}

export type FixtureScript = "calling-server.mjs" | "conformance-server.mjs" | "corpus-server.mjs" | "faulty-calls.mjs" | "faulty-server.mjs" | "sdk-server.mjs" | "sse-server.mjs";

/** Path of a committed corpus listing: `everything`, `git`, `memory`, `time`. */
export function corpusFile(name: string): string {
  return fileURLToPath(new URL(`../fixtures/corpus/${name}.json`, import.meta.url));
}

/**
 * Starts a fixture and resolves when it listens. Called inside a test, it is stopped when the test ends; called from
 * `beforeAll` (`keep: true`), the caller stops it.
 */
export async function startFixture(
  script: FixtureScript,
  args: readonly string[] = [],
  options: { keep?: boolean } = {},
): Promise<Fixture> {
  const path = fileURLToPath(new URL(`../fixtures/servers/${script}`, import.meta.url));
  const child = spawn(process.execPath, [path, ...args], { stdio: ["pipe", "pipe", "pipe"] });
  let complaint = "";
  child.stderr.on("data", (chunk: Buffer) => {
    complaint += chunk.toString();
  });
  const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
    await gone;
  };
  if (!options.keep) onTestFinished(stop);
  const url = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).once("line", (line) => resolve((JSON.parse(line) as { url: string }).url));
    child.once("exit", (code) => reject(new Error(`${script} ${args.join(" ")} ended with ${code}: ${complaint}`)));
    child.once("error", reject);
  });
  const at = (path: string) => new URL(path, url);
  return {
    url,
    pid: child.pid ?? 0,
    stop,
    control: async (body) => {
      const answer = await fetch(at("/control"), { method: "POST", body: JSON.stringify(body) });
      return (await answer.json()) as Record<string, unknown>;
    },
    requests: async () => (await (await fetch(at("/requests"))).json()) as SeenRequest[],
  };
}
