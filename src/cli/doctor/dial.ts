import { connect as connectTcp } from "node:net";
import { connect as connectTls } from "node:tls";

/** Whether somebody listens. */
export type Reach = "open" | "refused" | "timeout" | "unknown-host" | "unreachable";

/** What a listener speaks, judged by its answer to the first bytes of HTTP/2 and, if need be, to a TLS handshake. */
export type Speaks = "http2" | "http1" | "tls" | "silence" | "something-else";

export interface Place {
  readonly host: string;
  readonly port: number;
}

/** Reads `host:port`, with brackets around an IPv6 literal. */
export function placeOf(address: string): Place {
  const at = address.lastIndexOf(":");
  return { host: address.slice(0, at).replace(/^\[|\]$/g, ""), port: Number(address.slice(at + 1)) };
}

const REACHES: Readonly<Record<string, Reach>> = {
  ECONNREFUSED: "refused",
  ENOTFOUND: "unknown-host",
  EAI_AGAIN: "unknown-host",
  ETIMEDOUT: "timeout",
};

export function reach(place: Place, timeoutMs: number): Promise<Reach> {
  return new Promise((resolve) => {
    const socket = connectTcp({ host: place.host, port: place.port });
    const end = (how: Reach): void => {
      socket.destroy();
      resolve(how);
    };
    socket.setTimeout(timeoutMs, () => end("timeout"));
    socket.once("connect", () => end("open"));
    socket.once("error", (error: NodeJS.ErrnoException) => end(reachOf(error)));
  });
}

/** A name with several addresses fails once for each of them. */
function reachOf(error: NodeJS.ErrnoException & { readonly errors?: readonly NodeJS.ErrnoException[] }): Reach {
  const codes = [error, ...(error.errors ?? [])].map(({ code }) => REACHES[code ?? ""]);
  return codes.find((code) => code !== undefined) ?? "unreachable";
}

/** The client preface and an empty SETTINGS frame. */
const PREFACE = Buffer.concat([
  Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
  Buffer.from("000000040000000000", "hex"),
]);
const SETTINGS_TYPE = 4;

export async function speaks(place: Place, timeoutMs: number): Promise<Speaks> {
  const plain = await firstBytes(place, timeoutMs);
  if (plain.length > 3 && plain[3] === SETTINGS_TYPE) return "http2";
  if (plain.toString("latin1", 0, 5) === "HTTP/") return "http1";
  // A TLS listener answers an alert, or ends the connection without a word.
  if (await handshakes(place, timeoutMs)) return "tls";
  return plain.length === 0 ? "silence" : "something-else";
}

function firstBytes(place: Place, timeoutMs: number): Promise<Buffer> {
  return new Promise((resolve) => {
    const socket = connectTcp({ host: place.host, port: place.port });
    const end = (bytes: Buffer): void => {
      socket.destroy();
      resolve(bytes);
    };
    socket.setTimeout(timeoutMs, () => end(Buffer.alloc(0)));
    socket.once("connect", () => socket.write(PREFACE));
    socket.once("data", end);
    socket.once("close", () => end(Buffer.alloc(0)));
    socket.once("error", () => end(Buffer.alloc(0)));
  });
}

function handshakes(place: Place, timeoutMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    // Nothing is sent over this connection, so whose certificate it is does not matter here.
    const options = { host: place.host, port: place.port, rejectUnauthorized: false, ALPNProtocols: ["h2"] };
    const socket = connectTls(options);
    const end = (yes: boolean): void => {
      socket.destroy();
      resolve(yes);
    };
    socket.setTimeout(timeoutMs, () => end(false));
    socket.once("secureConnect", () => end(true));
    // An alert of the other side, such as for a missing client certificate, is a word of TLS too.
    socket.once("error", (error: NodeJS.ErrnoException) => end(/alert/i.test(`${error.code} ${error.message}`)));
    socket.once("close", () => end(false));
  });
}
