/** Flags and variables → one frozen object, or everything that is wrong with them. */
import { readRedisAddress } from "../domain/redis-address.js";
import { CLIENT_VARIABLES, SETTINGS } from "./settings.js";
import type { Config, HostPort, Setting } from "./settings.js";
import { formatAddress, isLoopback, readValue, redactUrl } from "./values.js";

export type Loaded =
  | { readonly ok: true; readonly config: Config; readonly warnings: readonly string[] }
  /** One sentence each. */
  | { readonly ok: false; readonly errors: readonly string[] };

export interface Sources {
  /** Arguments after the program's name. */
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** A flag beats its variable; an empty variable counts as unset. */
export function loadConfig(sources: Sources): Loaded {
  const errors: string[] = [];
  const flags = readFlags(sources.argv, errors);
  refuseUnknownVariables(sources.env, errors);
  const values: Record<string, unknown> = {};
  for (const setting of SETTINGS) {
    const text = flags.get(setting.flag) ?? (sources.env[setting.variable] || setting.fallback);
    const read = readValue(setting.kind, text);
    if (read.ok) values[setting.name] = read.value;
    else errors.push(`${named(setting)} must be ${read.expected}, not ${shown(setting, text)}.`);
  }
  const config = Object.freeze(values) as unknown as Config;
  const warnings = errors.length === 0 ? together(config, errors) : [];
  return errors.length === 0 ? { ok: true, config, warnings } : { ok: false, errors };
}

/** Configuration of this process. */
export function processSources(): Sources {
  return { argv: process.argv.slice(2), env: process.env };
}

/** Text of `--help`. */
export function helpText(): string {
  const rows = SETTINGS.map((s) => ({
    left: s.kind.kind === "switch" ? s.flag : `${s.flag} <${s.kind.kind}>`,
    right: `${s.help} [${s.variable}, ${s.fallback === "" ? "unset by default" : `default ${s.fallback}`}]`,
  }));
  const width = Math.max(...rows.map((r) => r.left.length));
  const lines = rows.map((r) => `  ${r.left.padEnd(width)}  ${r.right}`);
  return ["Usage: npm start -- [settings]", "", "Settings, by flag or by variable:", ...lines, ""].join("\n");
}

/** The table of settings for the README, in Markdown. */
export function settingsTable(): string {
  const rows = SETTINGS.map((s) => {
    const fallback = s.fallback === "" ? "unset" : `\`${s.fallback}\``;
    return `| \`${s.flag}\` | \`${s.variable}\` | ${fallback} | ${s.help} |`;
  });
  return ["| flag | variable | default | what it does |", "|---|---|---|---|", ...rows].join("\n");
}

function readFlags(argv: readonly string[], errors: string[]): Map<string, string> {
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
    else errors.push(`${named(setting)} needs a value.`);
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

/** Problems that no setting has alone. Answers warnings. */
function together(config: Config, errors: string[]): string[] {
  for (const [name, needed] of NEEDS) {
    if (config[name] !== "" && config[needed] === "") errors.push(`${namedAs(name)} needs ${namedAs(needed)} as well.`);
  }
  redisTogether(config, errors);
  return [...exposure(config, errors), ...openToPages(config)];
}

/** What is given for Redis must have a Redis to be given to, or it would be ignored in silence. */
function redisTogether(config: Config, errors: string[]): void {
  const address = config.store.kind === "redis" ? readRedisAddress(config.store.url) : undefined;
  const refuseUnless = (holds: boolean, names: readonly (keyof Config)[], needed: string): void => {
    for (const name of names) if (config[name] !== "" && !holds) errors.push(`${namedAs(name)} needs ${needed}.`);
  };
  refuseUnless(address?.tls === true, ["redisCa", "redisCert", "redisKey"], "a --store that begins with rediss");
  refuseUnless(address !== undefined, ["redisPasswordFile"], "a --store in Redis");
  const sentinels = address?.topology.kind === "sentinel";
  refuseUnless(sentinels, ["redisSentinelPasswordFile"], "a --store that begins with redis+sentinel or rediss+sentinel");
  if (config.redisPasswordFile !== "" && address && address.password !== "")
    errors.push(`The password for Redis is in --store and in ${namedAs("redisPasswordFile")}: leave one of them out.`);
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

function exposure(config: Config, errors: string[]): string[] {
  return SETTINGS.filter((s) => EXPOSED.includes(s.name)).flatMap((setting) => {
    const listens = config[setting.name] as HostPort | "off";
    return listens === "off" || isLoopback(listens.host)
      ? []
      : exposed(config, setting, formatAddress(listens), errors);
  });
}

/** Where callers are let in; the ops listener changes nothing and shows no catalogue. */
const EXPOSED: readonly string[] = ["grpcAddress", "httpAddress"];

function exposed(config: Config, setting: Setting, address: string, errors: string[]): string[] {
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
  errors.push(
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
