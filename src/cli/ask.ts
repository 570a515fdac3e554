import { createInterface } from "node:readline/promises";
import type { Io } from "./io.js";

/** Asks a person at the terminal; no where there is none, and for every answer but yes. */
export async function agrees(question: string, io: Io): Promise<boolean> {
  if (!process.stdin.isTTY) return false;
  const lines = createInterface({ input: process.stdin, output: io.stderr });
  try {
    const answer = await lines.question(`${question} [y/N] `, { signal: io.ending });
    return /^y(?:es)?$/i.test(answer.trim());
  } catch {
    return false; // Ended instead of answered.
  } finally {
    lines.close();
  }
}
