const VARINT = 0;
const FIXED64 = 1;
const LENGTH_DELIMITED = 2;
/** Bytes of the largest field key and value that are written here. */
const MAX_KEY = 5;
const MAX_VARINT = 8;
const DOUBLE = 8;
/** Enough for most messages but definitions and lists; a part of Buffer's own pool. */
const SMALL_BYTES = 128;

/**
 * Writes the fields of one protobuf message into pooled memory; fields with their default value are left out. The
 * library's writer takes memory of its own for each message, and to give that back took half the time of a hot read.
 */
export class WireWriter {
  private bytes: Buffer;
  private at = 0;

  /** `expected` is the message's length, if it is known. */
  constructor(expected = SMALL_BYTES) {
    this.bytes = Buffer.allocUnsafe(expected);
  }

  text(field: number, value: string): this {
    if (value === "") return this;
    const length = Buffer.byteLength(value);
    this.reserve(MAX_KEY + MAX_VARINT + length);
    this.opening(field, length);
    this.at += this.bytes.write(value, this.at, length, "utf8");
    return this;
  }

  flag(field: number, value: boolean): this {
    return this.int(field, value ? 1 : 0);
  }

  /** An integer of 0 to 2^53 - 1, or a number of an enum. */
  int(field: number, value: number): this {
    if (!Number.isSafeInteger(value) || value < 0) throw new RangeError(`field ${field} cannot hold ${value}`);
    if (value === 0) return this;
    this.reserve(MAX_KEY + MAX_VARINT);
    this.varint(field * 8 + VARINT);
    this.varint(value);
    return this;
  }

  /** A `double`. */
  double(field: number, value: number): this {
    if (value === 0) return this;
    this.reserve(MAX_KEY + DOUBLE);
    this.varint(field * 8 + FIXED64);
    this.at = this.bytes.writeDoubleLE(value, this.at);
    return this;
  }

  /** A nested message, given in parts; present even when it is empty. */
  nested(field: number, ...parts: readonly Uint8Array[]): this {
    let length = 0;
    for (const part of parts) length += part.byteLength;
    this.reserve(MAX_KEY + MAX_VARINT + length);
    this.opening(field, length);
    for (const part of parts) {
      this.bytes.set(part, this.at);
      this.at += part.byteLength;
    }
    return this;
  }

  /** Key and length of a field whose bytes are somebody else's to put after this message. */
  opening(field: number, length: number): this {
    this.reserve(MAX_KEY + MAX_VARINT);
    this.varint(field * 8 + LENGTH_DELIMITED);
    this.varint(length);
    return this;
  }

  /** The message. Nothing may be written afterwards. */
  finish(): Buffer {
    return this.bytes.subarray(0, this.at);
  }

  private varint(value: number): void {
    let rest = value;
    for (; rest > 0x7f; rest = Math.floor(rest / 128)) this.bytes[this.at++] = (rest % 128) | 0x80;
    this.bytes[this.at++] = rest;
  }

  private reserve(more: number): void {
    const needed = this.at + more;
    if (needed <= this.bytes.byteLength) return;
    const larger = Buffer.allocUnsafe(Math.max(needed, 2 * this.bytes.byteLength));
    larger.set(this.bytes.subarray(0, this.at));
    this.bytes = larger;
  }
}
