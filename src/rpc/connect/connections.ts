import type { Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** The open connections and how many answers each is waiting for, so that a shutdown ends them all. */
export class HttpConnections {
  private readonly open = new Map<Socket, number>();
  private closing = false;

  /** Those whose TLS handshake is not done, by peer. */
  private readonly shaking = new Map<string, Socket>();

  /** `tls`: whether requests come over what TLS makes of the server's connections. */
  watch(server: Server, tls: boolean): void {
    server.on(tls ? "secureConnection" : "connection", (socket: Socket) => {
      this.shaking.delete(peerOf(socket));
      this.open.set(socket, 0);
      socket.once("close", () => this.open.delete(socket));
    });
    if (!tls) return;
    server.on("connection", (socket: Socket) => {
      const peer = peerOf(socket);
      this.shaking.set(peer, socket);
      socket.once("close", () => {
        if (this.shaking.get(peer) === socket) this.shaking.delete(peer);
      });
    });
  }

  /** Counts an answer until it is written. */
  busy(response: ServerResponse): void {
    const { socket } = response;
    if (!socket) return;
    this.open.set(socket, (this.open.get(socket) ?? 0) + 1);
    response.once("close", () => {
      const left = (this.open.get(socket) ?? 1) - 1;
      if (this.open.has(socket)) this.open.set(socket, left);
      if (this.closing && left === 0) socket.destroySoon();
    });
  }

  /** Ends those that wait for nothing now, and each other one when it has its answer. */
  closeIdle(): void {
    this.closing = true;
    for (const [socket, busy] of this.open) if (busy === 0) socket.destroySoon();
    for (const socket of this.shaking.values()) socket.destroy();
  }

  destroyAll(): void {
    for (const socket of [...this.open.keys(), ...this.shaking.values()]) socket.destroy();
  }
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
