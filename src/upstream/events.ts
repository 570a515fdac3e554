/** Server-sent events, as bytes: the data of an event must reach the slicer unchanged. */

const LF = 0x0a;
const CR = 0x0d;
const DATA = Buffer.from("data:");
const EVENT = Buffer.from("event:");

/** Longest name of an event that is told apart; nothing that is known here comes near. */
const NAME_BYTES = 64;

export interface ServerEvent {
  /** Empty if the event has none. */
  readonly name: string;
  readonly data: Buffer;
}

/** Data of each event, whatever its name; otherwise as `serverEvents`. */
export async function* eventData(
  chunks: AsyncIterable<Buffer>,
  limit: number,
  tooLong: () => Error,
): AsyncGenerator<Buffer> {
  for await (const { data } of serverEvents(chunks, limit, tooLong)) yield data;
}

/** Events in order; those without data are passed over. `tooLong` makes the error for an event of more than `limit` bytes. */
export async function* serverEvents(
  chunks: AsyncIterable<Buffer>,
  limit: number,
  tooLong: () => Error,
): AsyncGenerator<ServerEvent> {
  let lines: Buffer[] = [];
  let size = 0;
  let name = "";
  for await (const line of splitLines(chunks, limit, tooLong)) {
    const data = fieldOf(line, DATA);
    if (line.length === 0) {
      const event = { name, data: joinLines(lines) };
      lines = [];
      size = 0;
      name = "";
      if (event.data.length > 0) yield event;
    } else if (data) {
      size += line.length;
      if (size > limit) throw tooLong();
      lines.push(data);
    } else name = fieldOf(line, EVENT)?.toString("utf8", 0, NAME_BYTES) ?? name;
  }
}

/** What stands in a line after the name of its field and at most one space; undefined in a line of another field. */
function fieldOf(line: Buffer, field: Buffer): Buffer | undefined {
  if (!line.subarray(0, field.length).equals(field)) return undefined;
  return line.subarray(line[field.length] === 0x20 ? field.length + 1 : field.length);
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
