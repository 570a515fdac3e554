/**
 * A bare HTTP/2 client for many cheap streams: it reads frame headers and looks at the first bytes of messages, and no
 * more. A real client would spend more on each message than the server does.
 */
import { connect } from "node:net";
import { framed } from "./h2load.mjs";

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
const TYPE = { data: 0, headers: 1, reset: 3, settings: 4, ping: 6, goaway: 7, windowUpdate: 8 };
const END_STREAM = 0x1;
const END_HEADERS = 0x4;
const ACK = 0x1;
/** Never in the way of what a bench sends. */
const WINDOW = 0x7fffffff;

function frame(type, flags, stream, payload = Buffer.alloc(0)) {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.byteLength, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** One header field that nobody needs to remember. */
function field(name, value) {
  const text = (s) => (s.length < 127 ? Buffer.concat([Buffer.from([s.length]), Buffer.from(s)]) : undefined);
  return Buffer.concat([Buffer.from([0]), text(name), text(value)]);
}

/** One connection. `open` starts a call; its messages come to `onMessage(stream, firstByte, payload)`. */
export class Streams {
  #socket;
  #next = 1;
  #rest = Buffer.alloc(0);
  onMessage = () => {};
  onEnd = () => {};

  static async connect(scope, address) {
    const [host, port] = address.split(":");
    const socket = connect(Number(port), host);
    await new Promise((resolve, reject) => socket.once("connect", resolve).once("error", reject));
    socket.setNoDelay(true);
    const streams = new Streams();
    streams.#begin(socket);
    scope.defer(() => socket.destroy());
    return streams;
  }

  #begin(socket) {
    this.#socket = socket;
    const settings = Buffer.alloc(6);
    settings.writeUInt16BE(4, 0);
    settings.writeUInt32BE(WINDOW, 2);
    const more = Buffer.alloc(4);
    more.writeUInt32BE(WINDOW - 65_535);
    socket.write(Buffer.concat([PREFACE, frame(TYPE.settings, 0, 0, settings), frame(TYPE.windowUpdate, 0, 0, more)]));
    socket.on("data", (chunk) => this.#take(chunk));
  }

  /** Answers the stream's number. */
  open(path, request) {
    const stream = this.#next;
    this.#next += 2;
    const headers = [
      [":method", "POST"],
      [":scheme", "http"],
      [":path", path],
      [":authority", "bench"],
      ["content-type", "application/grpc"],
      ["te", "trailers"],
    ].map(([name, value]) => field(name, value));
    const block = frame(TYPE.headers, END_HEADERS, stream, Buffer.concat(headers));
    this.#socket.write(Buffer.concat([block, frame(TYPE.data, END_STREAM, stream, framed(request))]));
    return stream;
  }

  #take(chunk) {
    let bytes = this.#rest.byteLength === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    while (bytes.byteLength >= 9) {
      const end = 9 + bytes.readUIntBE(0, 3);
      if (bytes.byteLength < end) break;
      this.#frame(bytes[3], bytes[4], bytes.readUInt32BE(5), bytes.subarray(9, end));
      bytes = bytes.subarray(end);
    }
    this.#rest = bytes;
  }

  #frame(type, flags, stream, payload) {
    if (type === TYPE.settings && !(flags & ACK)) this.#socket.write(frame(TYPE.settings, ACK, 0));
    if (type === TYPE.ping && !(flags & ACK)) this.#socket.write(frame(TYPE.ping, ACK, 0, payload));
    if (type === TYPE.reset || type === TYPE.goaway) throw new Error(`the server ended ${stream === 0 ? "a connection" : "a stream"}`);
    // Messages of a bench are short, so each is in one frame.
    if (type === TYPE.data && payload.byteLength > 5) this.onMessage(stream, payload[5], payload);
    if ((type === TYPE.data || type === TYPE.headers) && flags & END_STREAM) this.onEnd(stream);
  }
}
