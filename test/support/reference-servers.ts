/** The four reference servers of MCP, relayed and registered by `toolcrib wrap`. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { BIN } from "./cli.js";
import type { RemoteRegistry } from "./registry.js";
import { eventually } from "./upstream.js";

export interface ReferenceServers {
  readonly ids: readonly string[];
  stop(): Promise<void>;
}

const script = (name: string): string => fileURLToPath(new URL(`../../node_modules/@modelcontextprotocol/server-${name}/dist/index.js`, import.meta.url));

/** Registered as `everything`, `files` (over `folder`), `memory` and `thinking`; all listed when this resolves. The caller stops them. */
export async function startReferenceServers(registry: string, folder: string, remote: RemoteRegistry): Promise<ReferenceServers> {
  const commands: Readonly<Record<string, readonly string[]>> = {
    everything: [script("everything"), "stdio"],
    files: [script("filesystem"), folder],
    memory: [script("memory")],
    thinking: [script("sequential-thinking")],
  };
  const children: ChildProcess[] = Object.entries(commands).map(([id, command]) =>
    spawn(process.execPath, [BIN, "wrap", "--id", id, "--registry", registry, "--", process.execPath, ...command], {
      stdio: "ignore",
      env: { ...process.env, MEMORY_FILE_PATH: `${folder}/memory.jsonl` },
    }),
  );
  const stop = async (): Promise<void> => {
    for (const child of children) if (child.exitCode === null && child.signalCode === null) child.kill("SIGTERM");
    await Promise.all(children.map((child) => (child.exitCode === null && child.signalCode === null ? once(child, "exit") : undefined)));
  };
  const ids = Object.keys(commands);
  try {
    await eventually(
      async () => new Set((await remote.toolIds()).map((toolId) => toolId.split("/")[0])),
      (seen) => ids.every((id) => seen.has(id)),
    );
  } catch (error) {
    await stop();
    throw error;
  }
  return { ids, stop };
}
