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
      redisPasswordFile: "",
      redisSentinelPasswordFile: "",
      redisCa: "",
      redisCert: "",
      redisKey: "",
      partitions: 0,
      egressAllow: { networks: [], names: [] },
      warm: [],
      maxWatchers: 10_000,
      maxWatchersPerPrincipal: 1_000,
      maxServers: 10_000,
      maxTools: 200_000,
      maxToolsets: 50_000,
      maxToolsetsPerPrincipal: 20_000,
      registerRate: 50,
      maxLateness: 200,
      probeInterval: 10_000,
      probeTimeout: 5_000,
      probeFall: 3,
      probeRise: 2,
      graceMs: 10_000,
      logLevel: "info",
      insecure: false,
      tokensFile: "",
      certificatesFile: "",
      tlsCert: "",
      tlsKey: "",
      tlsClientCa: "",
      jwtJwks: "",
      jwtIssuer: "",
      jwtAudience: "",
      jwtAlgorithms: ["ES256", "RS256", "EdDSA"],
      upstreamCredentials: "",
      memory: "on",
      memoryRetention: 180,
      reportRate: 100,
      gateRules: "",
      gateway: false,
      gatewayAddress: { host: "127.0.0.1", port: 7853 },
      gatewayAlways: [],
      gatewayCallerCredentials: "",
      gatewayOpsAddress: "off",
      gatewayScopes: "",
      gatewaySelector: "",
      gatewaySelectorModel: "",
      gatewaySelectorKeyFile: "",
      gatewayCallers: "auto",
      gatewayHosts: "",
      gatewayIdle: 3_600,
      gatewayMode: "auto",
      gatewayOrigins: [],
      gatewayStableClients: "",
      gatewayStreams: 5_000,
      embedder: "",
      embedderModel: "",
      embedderKeyFile: "",
      embedderBudget: 150,
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

  it("tells what is wrong between settings beside what is wrong with each, and nothing that only follows from it", () => {
    const errors = errorsOf([
      ...["--grace=-1", "--tls-cert=c", "--grpc-address=0.0.0.0:7850", "--http-address=127.0.0.1:7850"],
      ...["--jwt-jwks=http://issuer.example", "--jwt-issuer=i", "--jwt-audience=a"],
    ]);
    expect(errors).toHaveLength(4);
    for (const part of [
      "--grace (TOOLCRIB_GRACE) must be",
      "--tls-cert (TOOLCRIB_TLS_CERT) needs --tls-key",
      "--grpc-address (TOOLCRIB_GRPC_ADDRESS) and --http-address (TOOLCRIB_HTTP_ADDRESS) are both port 7850: give each",
      "--jwt-jwks (TOOLCRIB_JWT_JWKS) must be",
    ])
      expect(errors.filter((error) => error.startsWith(part)), part).toHaveLength(1);
    expect(errorsOf(["--ops-address=localhost:7850"])[0]).toContain("are both port 7850");
    expect(errorsOf(["--ops-address=127.0.0.1:7851"])[0]).toContain("are both 127.0.0.1:7851");
    const apart = ["--grpc-address=127.0.0.1:0", "--http-address=127.0.0.1:0", "--ops-address=127.0.0.2:7851"];
    expect(loadConfig({ argv: apart, env: {} })).toMatchObject({ ok: true });
  });

  it("says in --help what kind of value each takes", () => {
    const help = helpText();
    for (const row of [
      "--grpc-address <host:port> ",
      "--http-address <host:port|off> ",
      "--data-dir <folder> ",
      "--tokens-file <file> ",
      "--jwt-jwks <file|url> ",
      "--grace <milliseconds> ",
      "--log-level <debug|info|warn|error> ",
    ])
      expect(help).toContain(`  ${row}`);
    expect(help).not.toMatch(/<(text|optional|choices?|integer|address)>/);
  });

  it("tells of an unknown flag once, not of its value as well", () => {
    expect(errorsOf(["--bogus", "value", "--also-bogus", "--grace", "5"])).toEqual([
      "--bogus is not a setting; --help lists them.",
      "--also-bogus is not a setting; --help lists them.",
    ]);
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
    ["--warm=noslash"],
    ["--warm=a/b,UPPER:a/b"],
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

  it("reads the HTTP listener's address and the origins that may call it", () => {
    const read = (...argv: string[]) => {
      const loaded = loadConfig({ argv, env: {} });
      if (!loaded.ok) throw new Error(loaded.errors.join());
      return loaded;
    };
    expect(read("--http-address=off").config.httpAddress).toBe("off");
    const origins = ["https://app.example", "http://localhost:5173"];
    expect(read(`--cors-origins=${origins.join(", ")}`).config.corsOrigins).toEqual(origins);
    expect(read("--cors-origins=*").warnings.join()).toContain("Any web page");
    expect(read("--cors-origins=*", "--http-address=off").warnings).toEqual([]);
    for (const wrong of ["app.example", "https://app.example/", "*,https://a.example", "ftp://a", "https://A.example", "null"])
      expect(errorsOf([`--cors-origins=${wrong}`]), wrong).toHaveLength(1);
    expect(errorsOf(["--http-address=OFF"])[0]).toContain("or off");
    expect(errorsOf(["--http-address=0.0.0.0:7851"])[0]).toContain("--http-address");
  });

  it("lets other machines in where callers are identified, and warns of tokens in plain text", () => {
    const outside = ["--grpc-address=0.0.0.0:7850", "--http-address=0.0.0.0:7851", "--tokens-file=t.json"];
    const plain = loadConfig({ argv: outside, env: {} });
    expect(plain.ok && plain.warnings).toHaveLength(2);
    expect(plain.ok && plain.warnings.join()).toContain("plain text");
    expect(loadConfig({ argv: [...outside, "--tls-cert=c", "--tls-key=k"], env: {} })).toMatchObject({ ok: true, warnings: [] });
    expect(loadConfig({ argv: ["--tokens-file=t.json"], env: {} })).toMatchObject({ ok: true, warnings: [] });
  });

  it.each([
    [["--jwt-jwks=k.json"], ["--jwt-issuer", "--jwt-audience"]],
    [["--jwt-issuer=i"], ["--jwt-jwks"]],
    [["--tls-cert=c"], ["--tls-key"]],
    [["--tls-client-ca=c"], ["--tls-cert", "--certificates-file"]],
    [["--certificates-file=c"], ["--tls-client-ca"]],
  ])("%j needs %j", (argv, needed) => {
    const errors = errorsOf(argv);
    expect(errors).toHaveLength(needed.length);
    for (const flag of needed) expect(errors.join()).toContain(`needs ${flag} `);
  });

  it.each(["none", "HS256", "ES256,none", "RS256;ES256", "es256"])("takes no JWT algorithm %s", (algorithms) => {
    expect(errorsOf([`--jwt-algorithms=${algorithms}`])[0]).toContain("one or more of ES256");
  });

  it.each(["http://issuer.example/jwks", "https://u:hunter2@issuer.example/jwks", "http://127.0.0.1.evil.example/jwks"])("takes no key set from %s", (url) => {
    const errors = errorsOf([`--jwt-jwks=${url}`, "--jwt-issuer=i", "--jwt-audience=a"]);
    expect(errors).toHaveLength(1);
    expect(errors[0]).not.toContain("hunter2");
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
