import type { WriteStream } from "node:tty";
import type { FrameLine } from "./frame.js";

const ESC = "\u001b[";
const LOOKS: Readonly<Record<FrameLine["look"], string>> = { plain: "", head: `${ESC}1m`, bad: `${ESC}31m` };
const CTRL_C = "\u0003";

/** The terminal's other screen, given back as it was. */
export class Screen {
  readonly #quit = new AbortController();
  readonly #heard = (keys: Buffer): void => {
    const text = keys.toString();
    if (text.includes(CTRL_C) || text.toLowerCase().includes("q")) this.#quit.abort();
  };

  constructor(private readonly terminal: WriteStream) {
    terminal.write(`${ESC}?1049h${ESC}?25l${ESC}2J`);
    const { stdin } = process;
    if (!stdin.isTTY) return;
    stdin.setRawMode(true);
    stdin.on("data", this.#heard);
    stdin.resume();
  }

  /** Aborted by q or Ctrl-C. */
  get quit(): AbortSignal {
    return this.#quit.signal;
  }

  get width(): number {
    return this.terminal.columns;
  }

  get height(): number {
    return this.terminal.rows;
  }

  /** In one write, over what was there, so that nothing flickers. */
  paint(lines: readonly FrameLine[]): void {
    const rows = lines.map(({ text, look }) => `${LOOKS[look]}${text}${look === "plain" ? "" : `${ESC}0m`}${ESC}K`);
    this.terminal.write(`${ESC}H${rows.join("\r\n")}${ESC}J`);
  }

  close(): void {
    const { stdin } = process;
    if (stdin.isTTY) {
      stdin.off("data", this.#heard);
      stdin.setRawMode(false);
      stdin.pause();
    }
    this.terminal.write(`${ESC}?25h${ESC}?1049l`);
  }
}
