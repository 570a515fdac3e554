import { describe, expect, it } from "vitest";
import { helpText, loadConfig, settingsTable } from "../../../src/config/config.js";
import { SETTINGS } from "../../../src/config/settings.js";
import { formatAddress, redactUrl } from "../../../src/config/values.js";

function errorsOf(argv: string[], env: Record<string, string> = {}): readonly string[] {
  const loaded = loadConfig({ argv, env });
  if (loaded.ok) throw new Error("expected errors");
  return loaded.errors;
}

describe("loadConfig", () => {
  it("has defaults for everything and freezes the result", () => {
    const loaded = loadConfig({ argv: [], env: {} });
    if (!loaded.ok) throw new Error(loaded.errors.join());
    expect(loaded.config).toEqual({
      grpcAddress: { host: "127.0.0.1", port: 7850 },
      httpAddress: { host: "127.0.0.1", port: 7851 },
      corsOrigins: [],
      opsAddress: { host: "127.0.0.1", port: 7852 },
      store: { kind: "embedded" },
      dataDir: "./data",
      redisPrefix: "toolcrib:",
      egressAllow: { networks: [], names: [] },
      maxWatchers: 10_000,
      graceMs: 10_000,
      logLevel: "info",
      insecure: false,
    });
    expect(Object.isFrozen(loaded.config)).toBe(true);
    expect(Object.isFrozen(loaded.config.grpcAddress)).toBe(true);
    expect(loaded.warnings).toEqual([]);
  });

  it("takes flags in both spellings, and a flag beats its variable", () => {
    const loaded = loadConfig({
      argv: ["--grpc-address", "[::1]:0", "--store=redis://u:secret@h:6380/2", "--log-level=debug"],
      env: { TOOLCRIB_LOG_LEVEL: "error", TOOLCRIB_GRACE: "0", TOOLCRIB_DATA_DIR: "", TOOLCRIB_URL: "x", HOME: "/" },
    });
    if (!loaded.ok) throw new Error(loaded.errors.join());
    expect(formatAddress(loaded.config.grpcAddress)).toBe("[::1]:0");
    expect(loaded.config.store).toEqual({ kind: "redis", url: "redis://u:secret@h:6380/2" });
    expect(loaded.config.logLevel).toBe("debug");
    expect(loaded.config.graceMs).toBe(0);
    expect(loaded.config.dataDir).toBe("./data");
  });

  it("tells everything that is wrong at once, each with flag and variable", () => {
    const errors = errorsOf(["--grpc-address=nowhere", "--grace=-1", "--bogus=1", "extra", "--data-dir"], {
      TOOLCRIB_STORE: "postgres://u:secret@h",
      TOOLCRIB_LOG_LEVEL: "loud",
      TOOLCRIB_TYPO: "1",
    });
    expect(errors).toHaveLength(8);
    const text = errors.join("\n");
    for (const part of [
      "--grpc-address (TOOLCRIB_GRPC_ADDRESS)",
      "--grace (TOOLCRIB_GRACE)",
      "--bogus",
      "TOOLCRIB_TYPO",
    ]) {
      expect(text).toContain(part);
    }
    expect(text).toContain("--data-dir (TOOLCRIB_DATA_DIR) needs a value.");
    expect(text).toContain('one of debug, info, warn, error, not "loud"');
    for (const error of errors) expect(error).toMatch(/^[^\n]*\.$/);
  });

  it("never shows a password, right or wrong", () => {
    expect(redactUrl("redis://u:secret@h:1/2")).toBe("redis://u:***@h:1/2");
    expect(redactUrl("rediss://:secret@h?password=secret")).toBe("rediss://:***@h");
    for (const store of ["postgres://u:secret@h", "redis://u:secret@", "u:secret@h", "redis://u:secret@h:99999999"]) {
      expect(errorsOf([`--store=${store}`]).join()).not.toContain("secret");
    }
  });

  it.each(["0.0.0.0:1", "192.168.1.2:7850", "[::]:7850", "registry.example:7850", "127.evil.example:1"])(
    "refuses %s without --insecure and warns with it",
    (address) => {
      expect(errorsOf(["--grpc-address", address])).toHaveLength(1);
      const loaded = loadConfig({ argv: ["--grpc-address", address, "--insecure"], env: {} });
      expect(loaded.ok && loaded.warnings[0]).toContain(address);
    },
  );

  it.each([
    ["--grpc-address=127.0.0.1:65536"],
    ["--grpc-address=127.0.0.1"],
    ["--grpc-address=::1:80"],
    ["--grace=1e3"],
    ["--grace=600001"],
    ["--redis-prefix=a b"],
    ["--insecure=maybe"],
    ["--store=redis://h/x"],
    ["--store=redis://me:1#rest@host"],
    ["--data-dir="],
    ["--egress-allow=10.0.0.1/8"],
    ["--egress-allow=169.254.169.254"],
    ["--egress-allow=*"],
  ])("refuses %s", (argument) => {
    expect(errorsOf([argument])).toHaveLength(1);
  });

  it("says everything that is wrong with a list at once", () => {
    const [error] = errorsOf([], { TOOLCRIB_EGRESS_ALLOW: "10.0.0.0/8, 10.1/16, *, fd00::1/8" });
    expect(error).toMatch(/^--egress-allow \(TOOLCRIB_EGRESS_ALLOW\) must be networks, addresses, host names and \*\.names/);
    for (const bad of ['"10.1/16" is no network', '"*" is neither', '"fd00::1/8" has bits set']) expect(error).toContain(bad);
  });

  it("refuses a flag given twice", () => {
    expect(errorsOf(["--grace=1", "--grace=2"])[0]).toContain("twice");
  });
});

describe("the table of settings", () => {
  it("stands whole in help and README table", () => {
    for (const setting of SETTINGS) {
      expect(helpText()).toContain(setting.flag);
      expect(helpText()).toContain(setting.variable);
      const fallback = setting.fallback === "" ? "unset" : `\`${setting.fallback}\``;
      expect(settingsTable()).toContain(`\`${setting.flag}\` | \`${setting.variable}\` | ${fallback} |`);
    }
  });
});
