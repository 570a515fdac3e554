import type { Http2Server } from "node:http2";
import type { Socket } from "node:net";

interface Connection {
  readonly socket: Socket;
  /** Has opened an HTTP/2 stream. Such a peer hears GOAWAY, and its session ends itself with its last stream. */
  spoke: boolean;
}

/**
 * The open connections. grpc-js counts them only for channelz, which costs every call something; without that its
 * `forceShutdown` ends none, and its `tryShutdown` waits for ever for a peer that connected and never said a word. Nothing
 * here happens per call.
 */
export class Connections {
  private readonly open = new Map<string, Connection>();

  watch(server: Http2Server): void {
    server.on("connection", (socket: Socket) => {
      const key = peerOf(socket);
      this.open.set(key, { socket, spoke: false });
      socket.once("close", () => this.open.delete(key));
    });
    server.on("session", (session) => {
      const connection = this.open.get(peerOf(session.socket));
      if (connection) session.once("stream", () => void (connection.spoke = true));
    });
  }

  /** Ends those that never opened a stream. */
  destroySilent(): void {
    for (const { socket, spoke } of this.open.values()) if (!spoke) socket.destroy();
  }

  destroyAll(): void {
    for (const { socket } of this.open.values()) socket.destroy();
  }
}

function peerOf(socket: Pick<Socket, "remoteAddress" | "remotePort" | "localAddress">): string {
  return `${socket.remoteAddress} ${socket.remotePort} ${socket.localAddress}`;
}
