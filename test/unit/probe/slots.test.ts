import { describe, expect, it } from "vitest";
import { createSlots } from "../../../src/probe/slots.js";
import { FakeClock, SeededRandom } from "../../support/fake-clock.js";

const never = (): AbortSignal => new AbortController().signal;

describe("slots", () => {
  it("hold their number, and all work is done", async () => {
    const clock = new FakeClock();
    const random = new SeededRandom(3);
    const slots = createSlots(4);
    let [running, most, done] = [0, 0, 0];
    for (let i = 0; i < 200; i++)
      void slots.run(never(), async () => {
        most = Math.max(most, ++running);
        await clock.sleep(1 + 100 * random.next());
        running--;
        done++;
      });
    await clock.advance(200 * 100);
    expect([most, done]).toEqual([4, 200]);
  });

  it("are given back by work that fails", async () => {
    const slots = createSlots(1);
    await expect(slots.run(never(), () => Promise.reject(new Error("it broke")))).rejects.toThrow("it broke");
    let ran = false;
    await slots.run(never(), async () => void (ran = true));
    expect(ran).toBe(true);
  });

  it("are not taken by who left while waiting, and the next one has its turn", async () => {
    const clock = new FakeClock();
    const slots = createSlots(1);
    const ran: string[] = [];
    const leaving = new AbortController();
    const work = (name: string) => async () => {
      ran.push(name);
      await clock.sleep(100);
    };
    const all = [slots.run(never(), work("first")), slots.run(leaving.signal, work("left")), slots.run(never(), work("next"))];
    await clock.advance(50);
    leaving.abort();
    await clock.advance(200);
    await Promise.all(all);
    expect(ran).toEqual(["first", "next"]);
  });

  it("lose no turn to who leaves in the very moment of being woken", async () => {
    const clock = new FakeClock();
    const slots = createSlots(1);
    const ran: string[] = [];
    const leaving = new AbortController();
    let finish = (): void => undefined;
    const first = slots.run(never(), () => new Promise<void>((resolve) => (finish = resolve)));
    const left = slots.run(leaving.signal, async () => void ran.push("left"));
    const next = slots.run(never(), async () => void ran.push("next"));
    await clock.settle();
    finish();
    void first.then(() => leaving.abort());
    queueMicrotask(() => leaving.abort());
    await Promise.all([first, left, next]);
    expect(ran).toContain("next");
  });

  it("do nothing for who has left already", async () => {
    const slots = createSlots(1);
    let ran = false;
    await slots.run(AbortSignal.abort(), async () => void (ran = true));
    expect(ran).toBe(false);
  });
});
