/** Server-sent events, as bytes: the data of an event must reach the slicer unchanged. */

const LF = 0x0a;
const CR = 0x0d;
const DATA = Buffer.from("data:");

/**
 * Data of each event, in order; events without data are passed over. `tooLong` makes the error for an event of more
 * than `limit` bytes.
 */
export async function* eventData(
  chunks: AsyncIterable<Buffer>,
  limit: number,
  tooLong: () => Error,
): AsyncGenerator<Buffer> {
  let lines: Buffer[] = [];
  let size = 0;
  for await (const line of splitLines(chunks, limit, tooLong)) {
    if (line.length === 0) {
      const data = joinLines(lines);
      lines = [];
      size = 0;
      if (data.length > 0) yield data;
    } else if (line.subarray(0, DATA.length).equals(DATA)) {
      size += line.length;
      if (size > limit) throw tooLong();
      lines.push(line.subarray(line[DATA.length] === 0x20 ? DATA.length + 1 : DATA.length));
    }
  }
}

function joinLines(lines: readonly Buffer[]): Buffer {
  const first = lines[0];
  if (first !== undefined && lines.length === 1) return first;
  return Buffer.concat(lines.flatMap((line, at) => (at === 0 ? [line] : [Buffer.of(LF), line])));
}

/** Lines ended by CR LF, LF or CR, without their ends. A last line without an end is not a line. */
async function* splitLines(chunks: AsyncIterable<Buffer>, limit: number, tooLong: () => Error): AsyncGenerator<Buffer> {
  let held: Buffer[] = [];
  let heldBytes = 0;
  let afterCr = false;
  for await (const chunk of chunks) {
    let start = 0;
    for (;;) {
      if (afterCr && start < chunk.length) {
        if (chunk[start] === LF) start++;
        afterCr = false;
      }
      const end = lineEnd(chunk, start);
      if (end < 0) break;
      yield Buffer.concat([...held, chunk.subarray(start, end)]);
      held = [];
      heldBytes = 0;
      afterCr = chunk[end] === CR;
      start = end + 1;
    }
    if (start < chunk.length) {
      held.push(chunk.subarray(start));
      heldBytes += chunk.length - start;
      if (heldBytes > limit) throw tooLong();
    }
  }
}

function lineEnd(chunk: Buffer, start: number): number {
  const lf = chunk.indexOf(LF, start);
  const cr = chunk.subarray(start, lf < 0 ? chunk.length : lf).indexOf(CR);
  return cr < 0 ? lf : start + cr;
}
