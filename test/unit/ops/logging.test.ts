import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { createLogger } from "../../../src/ops/logging.js";

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
