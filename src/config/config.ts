/** Flags and variables → one frozen object, or everything that is wrong with them. */
import { readRedisAddress } from "../domain/redis-address.js";
import { gatewayExposure, showsCallers } from "./gateway-exposure.js";
import { CLIENT_VARIABLES, SETTINGS } from "./settings.js";
import type { Config, HostPort, Setting } from "./setting.js";
import { formatAddress, isLoopback, readValue, redactUrl } from "./values.js";

export type Loaded =
  | { readonly ok: true; readonly config: Config; readonly warnings: readonly string[] }
  /** One sentence each. `readable` holds what could be read, and defaults for the rest: files that it names can be looked at too. */
  | { readonly ok: false; readonly errors: readonly string[]; readonly readable: Config };

export interface Sources {
  /** Arguments after the program's name. */
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** A flag beats its variable; an empty variable counts as unset. */
export function loadConfig(sources: Sources): Loaded {
  const errors: string[] = [];
  const wrong = new Set<keyof Config>();
  const flags = readFlags(sources.argv, errors, wrong);
  refuseUnknownVariables(sources.env, errors);
  const values: Record<string, unknown> = {};
  for (const setting of SETTINGS) {
    const text = flags.get(setting.flag) ?? (sources.env[setting.variable] || setting.fallback);
    const read = readValue(setting.kind, text);
    if (!read.ok) {
      wrong.add(setting.name);
      errors.push(`${named(setting)} must be ${read.expected}, not ${shown(setting, text)}.`);
    }
    const fallback = read.ok ? read : readValue(setting.kind, setting.fallback);
    if (fallback.ok) values[setting.name] = fallback.value;
  }
  const config = Object.freeze(values) as unknown as Config;
  const warnings = together(config, (about, sentence) => {
    // What a setting means for others is not known while its own value is wrong.
    if (!about.some((name) => wrong.has(name))) errors.push(sentence);
  });
  return errors.length === 0 ? { ok: true, config, warnings } : { ok: false, errors, readable: config };
}

/** Configuration of this process. */
export function processSources(): Sources {
  return { argv: process.argv.slice(2), env: process.env };
}

/** Text of `--help`. */
export function helpText(): string {
  const rows = SETTINGS.map((s) => ({
    left: `${s.flag}${placeholder(s)}`,
    right: `${s.help} [${s.variable}, ${s.fallback === "" ? "unset by default" : `default ${s.fallback}`}]`,
  }));
  const width = Math.max(...rows.map((r) => r.left.length));
  const lines = rows.map((r) => `  ${r.left.padEnd(width)}  ${r.right}`);
  return ["Usage: npm start -- [settings]", "", "Settings, by flag or by variable:", ...lines, ""].join("\n");
}

/** What stands for the value in `--help`. */
function placeholder({ name, kind }: Setting): string {
  switch (kind.kind) {
    case "address":
      return " <host:port>";
    case "address or off":
      return " <host:port|off>";
    case "origins":
      return " <url,…|*>";
    case "store":
      return " <embedded|memory|url>";
    case "destinations":
      return " <network|name,…>";
    case "tools":
      return " <server/tool,…>";
    case "text":
    case "optional":
      return ` <${kind.rule.placeholder ?? "text"}>`;
    case "choice":
      return ` <${kind.of.join("|")}>`;
    case "choices":
      return " <name,…>";
    case "integer":
      return name.endsWith("Ms") || name === "embedderBudget" ? " <milliseconds>" : " <number>";
    case "switch":
      return "";
  }
}

/** The table of settings for the README, in Markdown. */
export function settingsTable(): string {
  const rows = SETTINGS.map((s) => {
    const fallback = s.fallback === "" ? "unset" : `\`${s.fallback}\``;
    return `| \`${s.flag}\` | \`${s.variable}\` | ${fallback} | ${s.help} |`;
  });
  return ["| flag | variable | default | what it does |", "|---|---|---|---|", ...rows].join("\n");
}

function readFlags(argv: readonly string[], errors: string[], wrong: Set<keyof Config>): Map<string, string> {
  const found = new Map<string, string>();
  for (let i = 0; i < argv.length; i++) {
    const argument = argv[i] ?? "";
    const equals = argument.indexOf("=");
    const flag = equals < 0 ? argument : argument.slice(0, equals);
    const setting = SETTINGS.find((s) => s.flag === flag);
    if (!setting) {
      errors.push(unknownArgument(flag));
      // What follows an unknown setting was meant as its value, and is no mistake of its own.
      if (flag.startsWith("--") && equals < 0 && argv[i + 1]?.startsWith("--") === false) i++;
      continue;
    }
    if (found.has(flag)) errors.push(`${named(setting)} is given twice; give it once.`);
    if (equals >= 0) found.set(flag, argument.slice(equals + 1));
    else if (setting.kind.kind === "switch") found.set(flag, "true");
    else if (i + 1 < argv.length && !argv[i + 1]?.startsWith("--")) found.set(flag, argv[++i] ?? "");
    else {
      wrong.add(setting.name);
      errors.push(`${named(setting)} needs a value.`);
    }
  }
  return found;
}

function unknownArgument(flag: string): string {
  if (!flag.startsWith("--")) return "Only settings that begin with -- are taken; --help lists them.";
  const shownFlag = /^--[A-Za-z0-9-]{1,40}$/.test(flag) ? flag : "an argument";
  return `${shownFlag} is not a setting; --help lists them.`;
}

function refuseUnknownVariables(env: Sources["env"], errors: string[]): void {
  const known = new Set<string>([...SETTINGS.map((s) => s.variable), ...CLIENT_VARIABLES]);
  for (const name of Object.keys(env).sort()) {
    if (name.startsWith("TOOLCRIB_") && !known.has(name)) errors.push(`${name} is not a setting; --help lists them.`);
  }
}

/** Takes a sentence about several settings at once. */
type Report = (about: readonly (keyof Config)[], sentence: string) => void;

/** Problems that no setting has alone. Answers warnings. */
function together(config: Config, report: Report): string[] {
  for (const [name, needed] of NEEDS) {
    if (config[name] !== "" && config[needed] === "")
      report([name, needed], `${namedAs(name)} needs ${namedAs(needed)} as well.`);
  }
  redisTogether(config, report);
  samePort(config, report);
  return [...exposure(config, report), ...openToPages(config), ...exposedGateway(config, report)];
}

function exposedGateway(config: Config, report: Report): readonly string[] {
  if (!config.gateway) return [];
  const { errors, warnings } = gatewayExposure(config, showsCallers(config, hasIdentity(config)));
  for (const sentence of errors) report(["gatewayAddress", "gatewayCallers", "insecure"], sentence);
  return warnings;
}

const LISTENERS = ["grpcAddress", "httpAddress", "opsAddress", "gatewayAddress"] as const;

/** Each listener needs a port of its own; said of a start's own settings, not as of some other program that has it. */
function samePort(config: Config, report: Report): void {
  const listeners = LISTENERS.filter((name) => name !== "gatewayAddress" || config.gateway);
  listeners.forEach((one, i) => {
    for (const other of listeners.slice(i + 1)) {
      const [a, b] = [config[one], config[other]];
      if (a === "off" || b === "off" || a.port === 0 || a.port !== b.port || !sameHost(a.host, b.host)) continue;
      const where = a.host === b.host ? formatAddress(a) : `port ${a.port}`;
      report([one, other], `${namedAs(one)} and ${namedAs(other)} are both ${where}: give each a port of its own.`);
    }
  });
}

function sameHost(a: string, b: string): boolean {
  const [x, y] = [a, b].map((host) => (host === "localhost" ? "127.0.0.1" : host));
  return x === y || ["0.0.0.0", "::"].some((all) => x === all || y === all);
}

/** What is given for Redis must have a Redis to be given to, or it would be ignored in silence. */
function redisTogether(config: Config, report: Report): void {
  const address = config.store.kind === "redis" ? readRedisAddress(config.store.url) : undefined;
  const refuseUnless = (holds: boolean, names: readonly (keyof Config)[], needed: string): void => {
    for (const name of names)
      if (config[name] !== "" && !holds) report([name, "store"], `${namedAs(name)} needs ${needed}.`);
  };
  refuseUnless(address?.tls === true, ["redisCa", "redisCert", "redisKey"], "a --store that begins with rediss");
  refuseUnless(address !== undefined, ["redisPasswordFile"], "a --store in Redis");
  const sentinels = address?.topology.kind === "sentinel";
  refuseUnless(sentinels, ["redisSentinelPasswordFile"], "a --store that begins with redis+sentinel or rediss+sentinel");
  if (config.redisPasswordFile !== "" && address && address.password !== "") {
    const sentence = `The password for Redis is in --store and in ${namedAs("redisPasswordFile")}: leave one of them out.`;
    report(["redisPasswordFile", "store"], sentence);
  }
}

function openToPages(config: Config): string[] {
  if (config.httpAddress === "off" || hasIdentity(config) || !config.corsOrigins.includes("*")) return [];
  return [
    "Any web page that somebody opens where this registry can be reached can read and change it: name the origins in --cors-origins instead of *.",
  ];
}

const NEEDS: readonly (readonly [keyof Config, keyof Config])[] = [
  ["jwtJwks", "jwtIssuer"],
  ["jwtJwks", "jwtAudience"],
  ["jwtIssuer", "jwtJwks"],
  ["jwtAudience", "jwtJwks"],
  ["embedder", "embedderModel"],
  ["embedderModel", "embedder"],
  ["embedderKeyFile", "embedder"],
  ["gatewaySelector", "gatewaySelectorModel"],
  ["gatewaySelectorModel", "gatewaySelector"],
  ["gatewaySelectorKeyFile", "gatewaySelector"],
  ["redisCert", "redisKey"],
  ["redisKey", "redisCert"],
  ["tlsCert", "tlsKey"],
  ["tlsKey", "tlsCert"],
  ["tlsClientCa", "tlsCert"],
  ["tlsClientCa", "certificatesFile"],
  ["certificatesFile", "tlsClientCa"],
];

/** Whether callers say who they are. */
export function hasIdentity(config: Config): boolean {
  return config.tokensFile !== "" || config.jwtJwks !== "" || config.certificatesFile !== "";
}

function exposure(config: Config, report: Report): string[] {
  return SETTINGS.filter((s) => EXPOSED.includes(s.name)).flatMap((setting) => {
    const listens = config[setting.name] as HostPort | "off";
    return listens === "off" || isLoopback(listens.host)
      ? []
      : exposed(config, setting, formatAddress(listens), report);
  });
}

/** Where callers are let in; the ops listener changes nothing and shows no catalogue. */
const EXPOSED: readonly string[] = ["grpcAddress", "httpAddress"];

function exposed(config: Config, setting: Setting, address: string, report: Report): string[] {
  if (hasIdentity(config)) {
    if (config.tlsCert !== "") return [];
    return [
      `Tokens travel to ${address} in plain text, and whoever reads one on the way can use it: set --tls-cert and ` +
        "--tls-key, unless TLS ends in front of this replica.",
    ];
  }
  if (config.insecure) {
    return [`Anyone who can reach ${address} can read and change this registry: callers are not identified.`];
  }
  report(
    [setting.name, "tokensFile", "jwtJwks", "certificatesFile", "insecure"],
    `${named(setting)} is ${address}, which other machines can reach, and callers are not identified: set ` +
      "--tokens-file, --jwt-jwks or --tls-client-ca, use a loopback address, or add --insecure (TOOLCRIB_INSECURE) if the " +
      "network itself keeps others out.",
  );
  return [];
}

function namedAs(name: keyof Config): string {
  const setting = SETTINGS.find((s) => s.name === name);
  return setting ? named(setting) : name;
}

function named(setting: Setting): string {
  return `${setting.flag} (${setting.variable})`;
}

/** A wrong store or URL may still hold a password, so only its outline is shown. */
function shown(setting: Setting, text: string): string {
  if (setting.kind.kind === "optional" && text.includes("//")) return redactUrl(text);
  if (setting.kind.kind === "store")
    return text.includes("//") ? redactUrl(text) : text.includes("@") ? "***" : quoted(text);
  return quoted(text);
}

function quoted(text: string): string {
  return JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}…` : text);
}

/** Whether the arguments ask for `helpText` instead of a start. */
export function asksForHelp(argv: readonly string[]): boolean {
  return argv.includes("--help") || argv.includes("-h");
}

export function asksForVersion(argv: readonly string[]): boolean {
  return argv.includes("--version") || argv.includes("-V");
}
