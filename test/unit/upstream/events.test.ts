import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { eventData, serverEvents } from "../../../src/upstream/events.js";

async function read(parts: readonly string[], limit = 1_000): Promise<string[]> {
  const chunks = (async function* () {
    for (const part of parts) yield Buffer.from(part, "latin1");
  })();
  const found: string[] = [];
  for await (const data of eventData(chunks, limit, () => new RangeError("too long")))
    found.push(data.toString("latin1"));
  return found;
}

describe("server-sent events", () => {
  it("give the data of each event, whatever ends the lines", async () => {
    expect(await read(["data: a\n\ndata: b\r\n\r\ndata: c\r\r"])).toEqual(["a", "b", "c"]);
  });

  it("join several data lines, keep all but one leading space, pass over other fields and comments", async () => {
    expect(await read(["event: message\nid: 7\n: ping\ndata:  a\ndata:b\ndataset: x\n\n"])).toEqual([" a\nb"]);
  });

  it("have the name that was given last, and none if none was given", async () => {
    const chunks = (async function* () {
      yield Buffer.from("event: a\nevent:endpoint\ndata: 1\n\ndata: 2\n\nevent: b\n\ndata: 3\n\n");
    })();
    const found: string[] = [];
    for await (const { name, data } of serverEvents(chunks, 100, () => new RangeError())) found.push(`${name}=${data}`);
    expect(found).toEqual(["endpoint=1", "=2", "=3"]);
  });

  it("pass over events without data and over an event that was cut", async () => {
    expect(await read(["id: 1\ndata: \n\nretry: 5\n\n\n\ndata: a\n\ndata: cut\n"])).toEqual(["a"]);
  });

  it("refuse an event that is too long, in one line or in many", async () => {
    await expect(read(["data: ", "x".repeat(60), "x".repeat(60)], 100)).rejects.toThrow("too long");
    await expect(read(["data: xxxxxxxxxx\n".repeat(20)], 100)).rejects.toThrow("too long");
    expect(await read([": comment\n".repeat(100), "data: a\n\n".repeat(100)], 100)).toHaveLength(100);
  });

  it("do not depend on where the chunks are cut", async () => {
    const text = 'data: {"a":1}\r\n\r\n: c\rdata: x\rdata:  y\r\rid: 3\n\ndata: \xff\n\n';
    const whole = await read([text]);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(text.length), { maxLength: 12 }), async (cuts) => {
        const at = [0, ...[...cuts].sort((a, b) => a - b), text.length];
        const parts = at.slice(1).map((end, i) => text.slice(at[i], end));
        expect(await read(parts)).toEqual(whole);
      }),
      { numRuns: 300 },
    );
  });
});
