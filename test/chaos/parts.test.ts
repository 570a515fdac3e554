/** What a chaos run is made of: its plan, its wires, and how its parts of a history become one. */
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { temporaryFolder } from "../support/registry.js";
import { eventually } from "../support/upstream.js";
import { DEFAULT_FACTS } from "../validators/history.js";
import { merged } from "./merge.js";
import { planOf } from "./plan.js";
import { renaming, Wire } from "./wire.js";

it("the same seed makes the same plan, another seed another one, and every kind comes before any comes twice", () => {
  const facts = { seed: 5, minutes: 20, topology: "cluster", clocks: true } as const;
  const plan = planOf(facts);
  expect(planOf(facts)).toEqual(plan);
  expect(planOf({ ...facts, seed: 6 })).not.toEqual(plan);
  const kinds = new Set(plan.map((f) => f.kind));
  expect(kinds).toContain("slot-move");
  expect(kinds).toContain("clock-jump");
  const round = plan.slice(0, kinds.size + 1);
  expect(new Set(round.map((f) => f.kind)).size).toBe(kinds.size);
  expect(planOf({ ...facts, topology: "single", clocks: false }).map((f) => f.kind)).not.toContain("redis-failover");
  for (const { atMs, ms } of plan) expect(atMs + ms).toBeLessThanOrEqual(20 * 60_000);
});

async function echo(): Promise<{ wire: Wire; socket: Socket; heard: () => string }> {
  const server = createServer((socket) => socket.on("error", () => undefined).pipe(socket)).listen(0, "127.0.0.1");
  await once(server, "listening");
  const wire = await Wire.open((server.address() as AddressInfo).port);
  onTestFinished(() => {
    wire.close();
    server.close();
  });
  const socket = connect(wire.port, "127.0.0.1").on("error", () => undefined);
  let text = "";
  socket.on("data", (chunk: Buffer) => void (text += chunk.toString()));
  await once(socket, "connect");
  return { wire, socket, heard: () => text };
}

it("a hole swallows nothing for good: what was sent arrives when the wire is mended, in order", async () => {
  const { wire, socket, heard } = await echo();
  socket.write("one ");
  await eventually(heard, (text) => text === "one ");
  wire.set({ kind: "hole" });
  socket.write("two ");
  socket.write("three");
  wire.set({ kind: "slow", latencyMs: 20, jitterMs: 20 });
  socket.write(" four");
  await eventually(heard, (text) => text === "one two three four");
});

it("a slow wire keeps the order of what is sent, however the delays fall", async () => {
  const { wire, socket, heard } = await echo();
  wire.set({ kind: "slow", latencyMs: 2, jitterMs: 5 });
  const sent = Array.from({ length: 200 }, (_, i) => `${i} `);
  for (const piece of sent) {
    socket.write(piece);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await eventually(heard, (text) => text.length === sent.join("").length);
  expect(heard()).toBe(sent.join(""));
});

it("a cut wire ends its connections and takes no others until it is mended", async () => {
  const { wire, socket } = await echo();
  const closed = once(socket, "close");
  wire.set({ kind: "cut" });
  await closed;
  const other = connect(wire.port, "127.0.0.1").on("error", () => undefined);
  await once(other, "close");
  wire.set({ kind: "open" });
  const again = connect(wire.port, "127.0.0.1");
  again.write("here");
  const [chunk] = (await once(again, "data")) as [Buffer];
  expect(chunk.toString()).toBe("here");
  again.destroy();
});

it("addresses that Sentinels and cluster nodes name become those of the wires, and nothing else changes", () => {
  const rename = renaming(new Map([[34567, 40001], [34568, 40002]]));
  const change = (text: string): string => rename(Buffer.from(text, "latin1")).toString("latin1");
  expect(change("*2\r\n$9\r\n127.0.0.1\r\n$5\r\n34567\r\n")).toBe("*2\r\n$9\r\n127.0.0.1\r\n$5\r\n40001\r\n");
  expect(change("$2\r\nip\r\n$9\r\n127.0.0.1\r\n$4\r\nport\r\n$5\r\n34568\r\n")).toBe("$2\r\nip\r\n$9\r\n127.0.0.1\r\n$4\r\nport\r\n$5\r\n40002\r\n");
  expect(change("-MOVED 3999 127.0.0.1:34568\r\n")).toBe("-MOVED 3999 127.0.0.1:40002\r\n");
  expect(change("*3\r\n:0\r\n:5460\r\n*2\r\n$9\r\n127.0.0.1\r\n:34567\r\n")).toBe("*3\r\n:0\r\n:5460\r\n*2\r\n$9\r\n127.0.0.1\r\n:40001\r\n");
  expect(change("$7\r\n34567-0\r\n127.0.0.1:39999")).toBe("$7\r\n34567-0\r\n127.0.0.1:39999");
});

it("parts of a history are put in order by time; a call whose process was killed stays open, its spans do not", async () => {
  const folder = await temporaryFolder();
  const [one, two] = [join(folder, "one.jsonl"), join(folder, "two.jsonl")];
  const at = (n: number, ms: number) => ({ n, ms });
  const renew = { kind: "renew", replica: "a", namespace: "default", leaseIds: ["l"] };
  const lines = [
    { key: "1", item: { ...renew, call: at(1, 10), outcome: { kind: "pending" } } },
    { key: "2", item: { kind: "answering", namespace: "default", serverId: "s", from: at(2, 11) } },
    { key: "1", item: { ...renew, call: at(1, 10), back: at(3, 14), outcome: { kind: "ok", value: { states: ["OK"] } } } },
    { key: "3", item: { ...renew, call: at(4, 15), outcome: { kind: "pending" } } },
  ];
  await writeFile(one, `${lines.map((l) => JSON.stringify(l)).join("\n")}\n{"key":"4","ite`);
  await writeFile(two, `${JSON.stringify({ item: { kind: "belief", at: at(1, 12), namespace: "default", serverId: "s", tools: ["t"] } })}\n`);
  const { items, end } = await merged([{ path: one, killedMs: 20 }, { path: two }], DEFAULT_FACTS, 30);
  expect(items).toMatchObject([
    { kind: "renew", call: { n: 1 }, back: { n: 4 }, outcome: { kind: "ok" } },
    { kind: "answering", from: { n: 2 }, to: { n: 6, ms: 20 } },
    { kind: "belief", at: { n: 3 } },
    { kind: "renew", call: { n: 5 }, outcome: { kind: "pending" } },
  ]);
  expect(end).toEqual({ n: 7, ms: 30 });
});
