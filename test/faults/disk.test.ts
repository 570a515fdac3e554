/** The embedded store on a disk that is full. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { status } from "@grpc/grpc-js";
import { expect, it, vi } from "vitest";
import { refusalOf } from "../support/details.js";
import { declared, RemoteRegistry, startRegistry, temporaryFolder } from "../support/registry.js";
import { eventually } from "../support/upstream.js";

vi.setConfig({ testTimeout: 60_000 });

/** What one file may hold, in blocks of 512 bytes: the registry starts with it, and soon cannot write any more. */
const BLOCKS = 2_048;
const tool = (i: number) => ({ name: "big", description: `${i} ${"x".repeat(60_000)}`, inputSchema: { type: "object" } });
const HOUR = { leaseTtl: { seconds: 3600 } };

it("a full disk refuses Registers with STORE_FULL, reads go on, and a start with room has all that was acknowledged", async () => {
  const dataDir = await temporaryFolder();
  // The shell's limit is the nearest thing to a full disk that needs no rights: a write beyond it fails in the same way.
  const wrapper = join(dataDir, "limited.sh");
  await writeFile(wrapper, `#!/bin/sh\nulimit -f ${BLOCKS}\nexec "$@"\n`, { mode: 0o755 });
  const folder = join(dataDir, "data");
  const first = await startRegistry({ dataDir: folder, through: ["sh", wrapper] });
  const api = new RemoteRegistry(first.grpc);

  const acknowledged: string[] = [];
  let refusal: Awaited<ReturnType<typeof refusalOf>> | undefined;
  for (let i = 0; i < 200 && !refusal; i++) {
    const serverId = `server-${String(i).padStart(3, "0")}`;
    await api.call("register", declared(serverId, [tool(i)], HOUR)).then(
      () => acknowledged.push(`${serverId}/big`),
      async (error: unknown) => {
        refusal = await refusalOf(Promise.reject(error));
      },
    );
  }
  expect(refusal).toMatchObject({ code: status.RESOURCE_EXHAUSTED, reason: "STORE_FULL" });
  expect(acknowledged.length).toBeGreaterThan(3);
  const seen = await api.toolIds();
  expect(seen).toEqual(expect.arrayContaining(acknowledged));
  expect((await api.call("getFullSchema", { toolId: acknowledged[0] })).schema.definition.length).toBeGreaterThan(60_000);
  await first.kill();

  const second = await startRegistry({ dataDir: folder });
  const again = new RemoteRegistry(second.grpc);
  await eventually(
    () => again.toolIds(),
    (ids) => acknowledged.every((id) => ids.includes(id)),
  );
  await again.call("register", declared("room-again", [{ name: "small", inputSchema: { type: "object" } }], HOUR));
});
