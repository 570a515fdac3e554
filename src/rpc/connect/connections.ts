import type { Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** The open connections and how many answers each is waiting for, so that a shutdown ends them all. */
export class HttpConnections {
  private readonly open = new Map<Socket, number>();
  private closing = false;

  /** Below TLS; they wait for nothing, and end with what is above them or with the grace. */
  private readonly raw = new Set<Socket>();

  /** `tls`: whether requests come over what TLS makes of the server's connections. */
  watch(server: Server, tls: boolean): void {
    server.on(tls ? "secureConnection" : "connection", (socket: Socket) => {
      this.open.set(socket, 0);
      socket.once("close", () => this.open.delete(socket));
    });
    if (!tls) return;
    server.on("connection", (socket: Socket) => {
      this.raw.add(socket);
      socket.once("close", () => this.raw.delete(socket));
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
  }

  destroyAll(): void {
    for (const socket of [...this.open.keys(), ...this.raw]) socket.destroy();
  }
}
