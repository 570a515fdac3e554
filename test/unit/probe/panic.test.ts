import { describe, expect, it } from "vitest";
import { createPanic } from "../../../src/probe/panic.js";
import { FakeClock } from "../../support/fake-clock.js";
import { SILENT } from "../../support/records.js";

function bench(servers: number) {
  const clock = new FakeClock();
  const changes: boolean[] = [];
  const panic = createPanic({ clock, logger: SILENT, onChange: (on) => void changes.push(on) });
  const note = (i: number, bad: boolean) => panic.note(`srv-${i}`, { atMs: clock.monotonic(), bad });
  const noteAll = (bad: boolean, count = servers) => {
    for (let i = 0; i < count; i++) note(i, bad);
  };
  noteAll(false);
  return { clock, changes, panic, note, noteAll };
}

describe("the panic", () => {
  it("begins when more than half turned bad at once, and ends when half answer", async () => {
    const { clock, changes, panic, note, noteAll } = bench(10);
    await clock.advance(10_000);
    noteAll(true, 6);
    expect(panic.mayFall(10_000)).toBe("panic");
    expect(panic.state).toMatchObject({ bad: 6, servers: 10 });
    noteAll(true);
    expect(panic.state).toMatchObject({ bad: 10, servers: 10 });
    expect(panic.mayFall(clock.monotonic())).toBe("panic");
    for (let i = 0; i < 4; i++) note(i, false);
    expect(panic.state).toBeDefined();
    note(4, false);
    expect([panic.state, changes]).toEqual([undefined, [true, false]]);
  });

  it("makes the others be looked at while it is in doubt, and lets one fall alone", async () => {
    const { clock, panic, note } = bench(10);
    const looks: number[] = [];
    const undoubt = panic.onDoubt((sinceMs) => void looks.push(sinceMs));
    await clock.advance(10_000);
    note(0, true);
    expect(panic.mayFall(10_000)).toBe("wait");
    expect(looks).toEqual([10_000]);
    note(1, false);
    expect(panic.mayFall(10_000)).toBe("fall");
    undoubt();
    await clock.advance(1_000);
    note(2, true);
    panic.mayFall(11_000);
    expect(looks).toEqual([10_000]);
  });

  it("gives up a doubt that nobody could resolve within 30 s", async () => {
    const { clock, panic, note } = bench(10);
    await clock.advance(10_000);
    note(0, true);
    expect(panic.mayFall(10_000)).toBe("wait");
    await clock.advance(30_001);
    expect(panic.mayFall(10_000)).toBe("fall");
  });

  it("never begins in a registry of three", async () => {
    const { clock, panic, noteAll } = bench(3);
    await clock.advance(10_000);
    noteAll(true);
    expect(panic.mayFall(10_000)).toBe("fall");
  });

  it("ends when the servers that were bad are gone", async () => {
    const { clock, panic, noteAll } = bench(6);
    await clock.advance(10_000);
    noteAll(true);
    expect(panic.mayFall(10_000)).toBe("panic");
    for (let i = 0; i < 6; i++) panic.note(`srv-${i}`, undefined);
    expect(panic.state).toBeUndefined();
  });
});
