import type { Http2Server } from "node:http2";
import type { Socket } from "node:net";

interface Connection {
  readonly socket: Socket;
  /** Open HTTP/2 streams. */
  streams: number;
}

/**
 * The open connections. grpc-js counts them only for channelz, which costs every call something; without that its
 * `forceShutdown` ends none, and its `tryShutdown` waits for ever for a peer that connected and never said a word.
 */
export class Connections {
  private readonly open = new Map<string, Connection>();

  watch(server: Http2Server): void {
    server.on("connection", (socket: Socket) => {
      const key = peerOf(socket);
      this.open.set(key, { socket, streams: 0 });
      socket.once("close", () => this.open.delete(key));
    });
    server.on("stream", (stream) => {
      const connection = stream.session && this.open.get(peerOf(stream.session.socket));
      if (!connection) return;
      connection.streams++;
      stream.once("close", () => connection.streams--);
    });
  }

  /** Ends those without a stream. */
  destroyIdle(): void {
    for (const { socket, streams } of this.open.values()) if (streams === 0) socket.destroy();
  }

  destroyAll(): void {
    for (const { socket } of this.open.values()) socket.destroy();
  }
}

function peerOf(socket: Pick<Socket, "remoteAddress" | "remotePort" | "localAddress">): string {
  return `${socket.remoteAddress} ${socket.remotePort} ${socket.localAddress}`;
}
