import type { Availability, Tool } from "../domain/server.js";
import type { StubCodec } from "./ports.js";

/** A server's tools as encoded list elements, end to end in name order: any run of them is one piece of memory. */
export class Frames {
  private readonly bytes: Buffer;
  /** Where each begins, and where the last one ends. */
  private readonly offsets: Uint32Array;

  constructor(tools: readonly Tool[], availability: Availability, codec: StubCodec) {
    const frames = tools.map((tool) => codec.frame(tool, availability));
    this.bytes = Buffer.concat(frames);
    this.offsets = new Uint32Array(frames.length + 1);
    for (const [i, frame] of frames.entries()) this.offsets[i + 1] = (this.offsets[i] as number) + frame.byteLength;
  }

  /** The elements `from` up to, without, `to`. Never to be written to. */
  run(from: number, to: number): Buffer {
    return this.bytes.subarray(this.offsets[from], this.offsets[to]);
  }

  /** The largest `end` ≤ `to` for which the elements from `from` have at most `room` bytes. */
  fitting(from: number, to: number, room: number): number {
    const limit = (this.offsets[from] as number) + room;
    let end = from;
    while (end < to && (this.offsets[end + 1] as number) <= limit) end++;
    return end;
  }
}
