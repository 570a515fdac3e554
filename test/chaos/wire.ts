/** A wire between two processes that can be cut, made slow, or made to swallow everything until it is mended. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

export type WireMode =
  | { readonly kind: "open" }
  /** Ends every connection, new ones at once. */
  | { readonly kind: "cut" }
  /** Each piece arrives that much later, and in order. */
  | { readonly kind: "slow"; readonly latencyMs: number; readonly jitterMs: number }
  /** Nobody hears of a loss; what was sent arrives when the wire is mended, as TCP would have it. */
  | { readonly kind: "hole" };

/** What is under way in one direction of one connection. */
interface Lane {
  readonly from: Socket;
  readonly to: Socket;
  readonly back: boolean;
  /** In the order in which they came: timers alone would not keep it. */
  readonly pieces: { readonly bytes: Buffer; readonly dueMs: number }[];
  waiting: number;
}

/** More under way, and the sender has to wait. */
const UNDER_WAY = 1 << 20;

export class Wire {
  readonly #lanes = new Set<Lane>();
  readonly #server: Server;
  #mode: WireMode = { kind: "open" };

  private constructor(
    server: Server,
    private readonly toPort: number,
    private readonly rewrite: (bytes: Buffer) => Buffer,
  ) {
    this.#server = server;
    server.on("connection", (near) => this.#join(near));
  }

  /** `rewrite` sees what comes back from the far side. */
  static async open(toPort: number, rewrite: (bytes: Buffer) => Buffer = (bytes) => bytes): Promise<Wire> {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    return new Wire(server, toPort, rewrite);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  set(mode: WireMode): void {
    this.#mode = mode;
    for (const lane of this.#lanes) {
      if (mode.kind === "cut") lane.from.destroy();
      else if (mode.kind === "hole") lane.from.pause();
      else lane.from.resume();
    }
  }

  close(): void {
    this.#server.close();
    this.set({ kind: "cut" });
  }

  #join(near: Socket): void {
    near.on("error", () => near.destroy());
    if (this.#mode.kind === "cut") return void near.destroy();
    const far = connect(this.toPort, "127.0.0.1");
    far.on("error", () => far.destroy());
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.setNoDelay(true);
      const lane: Lane = { from, to, back: from === far, pieces: [], waiting: 0 };
      this.#lanes.add(lane);
      from.on("data", (bytes: Buffer) => this.#carry(lane, bytes));
      from.on("close", () => {
        this.#lanes.delete(lane);
        to.destroy();
      });
      if (this.#mode.kind === "hole") from.pause();
    }
  }

  #carry(lane: Lane, bytes: Buffer): void {
    const piece = lane.back ? this.rewrite(bytes) : bytes;
    const mode = this.#mode;
    if (mode.kind !== "slow" && lane.pieces.length === 0) return this.#put(lane, piece);
    const later = mode.kind === "slow" ? mode.latencyMs + Math.random() * mode.jitterMs : 0;
    lane.pieces.push({ bytes: piece, dueMs: performance.now() + later });
    lane.waiting += piece.byteLength;
    if (lane.waiting > UNDER_WAY) lane.from.pause();
    if (lane.pieces.length === 1) this.#deliver(lane);
  }

  /** The first piece when it is due, and then the next. */
  #deliver(lane: Lane): void {
    const [first] = lane.pieces;
    if (!first) return;
    setTimeout(() => {
      lane.pieces.shift();
      lane.waiting -= first.bytes.byteLength;
      if (lane.waiting <= UNDER_WAY && this.#mode.kind !== "hole") lane.from.resume();
      this.#put(lane, first.bytes);
      this.#deliver(lane);
    }, first.dueMs - performance.now());
  }

  #put({ from, to }: Lane, piece: Buffer): void {
    if (to.destroyed || to.write(piece)) return;
    from.pause();
    to.once("drain", () => {
      if (this.#mode.kind !== "hole") from.resume();
    });
  }
}

/**
 * Sentinels and cluster nodes name each other's addresses. A replica that dialled those would leave its wires, so every port in what
 * they say becomes that of the replica's own wire there. Both have five digits: lengths stay as they were said.
 */
export function renaming(ports: ReadonlyMap<number, number>): (bytes: Buffer) => Buffer {
  const address = /(127\.0\.0\.1(?:\r\n\$4\r\nport)?(?:\r\n\$5)?(?:\r\n)?:?)(\d{5})(?!\d)/g;
  return (bytes) => {
    if (!bytes.includes("127.0.0.1")) return bytes;
    const text = bytes.toString("latin1").replace(address, (all, before: string, port: string) => {
      const other = ports.get(Number(port));
      return other === undefined ? all : `${before}${other}`;
    });
    return Buffer.from(text, "latin1");
  };
}
