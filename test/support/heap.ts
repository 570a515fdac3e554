/** The heap of a process under test, as it tells it itself after it collected its garbage. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "./registry.js";
import { eventually } from "./upstream.js";

export interface HeapProbe {
  /** For the environment of the process. */
  readonly env: Record<string, string>;
  /** Bytes. */
  used(): Promise<number>;
}

export async function heapProbe(): Promise<HeapProbe> {
  const file = join(await temporaryFolder(), "port");
  const report = new URL("../fixtures/heap-report.mjs", import.meta.url).href;
  return {
    env: { NODE_OPTIONS: `--import=${report}`, HEAP_PORT_FILE: file },
    used: async () => {
      await eventually(() => existsSync(file), (written) => written);
      const answer = await fetch(`http://127.0.0.1:${readFileSync(file, "utf8")}`);
      return Number(await answer.text());
    },
  };
}
