/** The reference server of the MCP project, as a process. */
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { freePort } from "./ports.js";
import { eventually } from "./upstream.js";

const SCRIPT = fileURLToPath(new URL("../../node_modules/@modelcontextprotocol/server-everything/dist/index.js", import.meta.url));

export interface EverythingServer {
  readonly url: string;
  /** Resolves when it is gone. */
  kill(): Promise<void>;
}

/** Listens when it resolves; killed when the test ends. */
export async function startEverything(transport: "streamableHttp" | "sse"): Promise<EverythingServer> {
  const port = await freePort();
  const child = spawn(process.execPath, [SCRIPT, transport], { stdio: "ignore", env: { ...process.env, PORT: String(port) } });
  const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const kill = async (): Promise<void> => {
    child.kill("SIGKILL");
    await gone;
  };
  onTestFinished(kill);
  const origin = `http://127.0.0.1:${port}`;
  const answers = () =>
    fetch(`${origin}/none`).then(
      ({ status }) => status > 0,
      () => false,
    );
  await eventually(answers, (is) => is);
  return { url: `${origin}/${transport === "sse" ? "sse" : "mcp"}`, kill };
}
