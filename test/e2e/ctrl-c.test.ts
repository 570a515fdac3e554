import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { temporaryFolder } from "../support/registry.js";
import { eventually } from "../support/upstream.js";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

it("one Ctrl-C on npm start is a graceful stop, though the terminal and npm both deliver it", async () => {
  const settings = ["--grpc-address", "127.0.0.1:0", "--http-address", "off", "--ops-address", "127.0.0.1:0"];
  const args = ["start", "--", ...settings, "--data-dir", await temporaryFolder()];
  // A group of its own, as a terminal makes one: a signal to the group reaches npm and the registry alike.
  const child = spawn("npm", args, { cwd: ROOT, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  const group = -(child.pid as number);
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  onTestFinished(() => {
    try {
      process.kill(group, "SIGKILL");
    } catch {
      // It is gone, as it should be.
    }
  });
  let text = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => void (text += chunk.toString()));
  await eventually(
    () => text,
    (t) => t.includes("catalogue loaded"),
  );
  process.kill(group, "SIGINT");
  await exited;
  await eventually(
    () => text,
    (t) => t.includes('"msg":"stopped"'),
  );
  expect(text).toContain('"msg":"stopping"');
});
