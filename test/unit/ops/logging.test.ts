import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { createLogger, linesTo } from "../../../src/ops/logging.js";

function logged(write: (log: ReturnType<typeof createLogger>) => void, level: "debug" | "info" = "info"): string {
  const out = new PassThrough();
  write(createLogger({ level, destination: out }));
  return String(out.read() ?? "");
}

describe("createLogger", () => {
  it("writes one JSON object a line with level word and ISO time", () => {
    const line = JSON.parse(logged((log) => log.info({ method: "Register" }, "refused")));
    expect(line).toMatchObject({ level: "info", method: "Register", msg: "refused" });
    expect(new Date(line.time).toISOString()).toBe(line.time);
    expect(line.pid).toBeUndefined();
  });

  it("writes nothing below its level", () => {
    expect(logged((log) => log.debug({}, "quiet"))).toBe("");
    expect(logged((log) => log.debug({}, "loud"), "debug")).toContain("loud");
  });

  it("shows an error with its causes, and only what tells the fault", () => {
    const error = Object.assign(new Error("outer", { cause: new Error("inner") }), { request: { huge: "x" } });
    const line = JSON.parse(logged((log) => log.error({ err: error, cause: "plain" }, "failed")));
    expect(line.err).toMatchObject({ message: expect.stringContaining("outer"), cause: { message: "inner" } });
    expect(line.err.stack).toContain("logging.test");
    expect(JSON.stringify(line)).not.toContain("huge");
    expect(line.cause).toBe("plain");
  });

  it("never writes secrets", () => {
    const error = new Error("connect redis://user:hunter2@h:1 failed", { cause: new Error("http://:hunter2@h") });
    const text = logged((log) =>
      log.error({ err: error, password: "hunter2", headers: { authorization: "hunter2" } }, "x"),
    );
    expect(text).not.toContain("hunter2");
    expect(text).toContain("redis://user:***@h:1");
  });
});

describe("lines to a file descriptor", () => {
  const failing = (code: string) => Object.assign(new Error(code), { code });

  it("are dropped for good once nobody reads them", () => {
    let writes = 0;
    const lines = linesTo(1, () => {
      writes++;
      throw failing("EPIPE");
    });
    lines.write("one\n");
    lines.write("two\n");
    expect(writes).toBe(1);
  });

  it("are written whole over a pipe that takes a part at a time, and that is full now and then", () => {
    const taken: number[] = [];
    let turn = 0;
    const lines = linesTo(1, (_fd, bytes) => {
      if (turn++ % 2 === 0) throw failing("EAGAIN");
      taken.push(bytes[0] as number);
      return 1;
    });
    lines.write("abc\n");
    expect(Buffer.from(taken).toString()).toBe("abc\n");
  });

  it("wait a while for a reader that does not read, then no more until it does", () => {
    let writes = 0;
    let full = true;
    const lines = linesTo(1, (_fd, bytes) => {
      writes++;
      if (full) throw failing("EAGAIN");
      return bytes.byteLength;
    });
    lines.write("dropped\n");
    const waited = writes;
    expect(waited).toBeGreaterThan(1);
    lines.write("dropped at once\n");
    expect(writes).toBe(waited + 1);
    full = false;
    lines.write("through\n");
    expect(writes).toBe(waited + 2);
  });
});
