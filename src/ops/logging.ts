/** JSON lines for machines and people with a JSON viewer; never a secret. */
import { writeSync } from "node:fs";
import type { Writable } from "node:stream";
import { type Logger as Pino, pino, stdSerializers } from "pino";

export type LogLevel = "debug" | "info" | "warn" | "error";

/** Keys that hold secrets wherever they appear, one level deep and at the top. */
const SECRET_KEYS = ["password", "authorization", "cookie", "token", "secret", "apiKey"];

export interface LoggingOptions {
  readonly level: LogLevel;
  /** Standard output if not given. */
  readonly destination?: Writable;
}

/** A logger of one JSON object a line: level, time (ISO 8601, UTC), msg, and the fields given. */
export function createLogger(options: LoggingOptions): Pino {
  const settings = {
    level: options.level,
    base: null,
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { err: errorFields, error: errorFields, cause: errorFields },
    redact: { paths: SECRET_KEYS.flatMap((key) => [key, `*.${key}`]), censor: "***" },
  };
  return pino(settings, options.destination ?? linesTo(1));
}

/** How often, and after how long, a line is tried again that the reader of a full pipe has not made room for. */
const TRIES = 100;
const TRY_MS = 10;

/**
 * Writes each line at once, so that the last words of a process are not lost. Nobody who reads, or does not read, a log may stop
 * the registry: pino's own destination waits without end for a reader that has gone.
 */
export function linesTo(fd: number, write: (fd: number, bytes: Uint8Array) => number = writeSync) {
  const wait = new Int32Array(new SharedArrayBuffer(4));
  let gone = false;
  /** A line was dropped; until one passes again, none is waited for. */
  let stuck = false;
  return {
    write(line: string): void {
      let rest: Uint8Array = Buffer.from(line);
      for (let tries = 0; rest.byteLength > 0 && !gone; ) {
        try {
          rest = rest.subarray(write(fd, rest));
          stuck = false;
        } catch (error) {
          const { code } = error as NodeJS.ErrnoException;
          if (code !== "EAGAIN" && code !== "EBUSY") gone = true;
          else if (stuck || ++tries > TRIES) {
            stuck = true;
            return;
          } else Atomics.wait(wait, 0, 0, TRY_MS);
        }
      }
    },
  };
}

/** What an error says, causes included, with passwords in URLs taken out. Values that are no errors are shown as text. */
export function errorFields(error: unknown): unknown {
  if (!(error instanceof Error)) return error === undefined ? undefined : withoutPasswords(String(error));
  const shown = stdSerializers.errWithCause(error);
  return JSON.parse(withoutPasswords(JSON.stringify(pick(shown, 0))));
}

interface ShownError {
  readonly type: string;
  readonly message: string;
  readonly code?: unknown;
  readonly stack: string | undefined;
  readonly cause?: ShownError;
}

/** An error may carry anything, such as a whole request: only what tells the fault is kept. */
function pick(error: object, depth: number): ShownError {
  const { type, message, code, stack, cause } = error as Partial<ShownError>;
  const causeShown = cause !== undefined && typeof cause === "object" && depth < 5 ? pick(cause, depth + 1) : undefined;
  return {
    type: type ?? "Error",
    message: message ?? "",
    ...(typeof code === "string" || typeof code === "number" ? { code } : {}),
    stack,
    ...(causeShown ? { cause: causeShown } : {}),
  };
}

function withoutPasswords(text: string): string {
  return text.replace(/(\b[a-z][a-z0-9+.-]*:\/\/[^\s:@/"\\]*):[^\s@/"\\]+@/gi, "$1:***@");
}
