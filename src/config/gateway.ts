/** The settings of a gateway in a process of its own. */
import type { Sources } from "./config.js";
import { gatewayExposure } from "./gateway-exposure.js";
import type { Config, Setting } from "./setting.js";
import { SETTINGS } from "./settings.js";
import { readValue } from "./values.js";

const NAMES = [
  "gatewayAddress",
  "gatewayMode",
  "gatewayStableClients",
  "gatewayHosts",
  "gatewayOrigins",
  "gatewayCallers",
  "gatewayAlways",
  "gatewayIdle",
  "gatewayStreams",
  "gatewayCallerCredentials",
  "gatewayOpsAddress",
  "gatewayScopes",
  "gatewaySelector",
  "gatewaySelectorModel",
  "gatewaySelectorKeyFile",
  "egressAllow",
  "upstreamCredentials",
  "tlsCert",
  "tlsKey",
  "graceMs",
  "logLevel",
  "insecure",
] as const satisfies readonly (keyof Config)[];

export type GatewayConfig = Pick<Config, (typeof NAMES)[number]>;

/** Those of the registry's settings that such a gateway has, in the order in which they are shown. */
export const GATEWAY_SETTINGS: readonly Setting[] = SETTINGS.filter(({ name }) => (NAMES as readonly string[]).includes(name));

export type LoadedGateway =
  | { readonly ok: true; readonly config: GatewayConfig; readonly warnings: readonly string[] }
  /** One sentence each. */
  | { readonly ok: false; readonly errors: readonly string[] };

/** `given` holds what the command line said, by the settings' names. An empty variable counts as unset. */
export function loadGateway(given: Readonly<Partial<Record<keyof Config, string>>>, env: Sources["env"]): LoadedGateway {
  const errors: string[] = [];
  const values: Record<string, unknown> = {};
  for (const { name, kind, flag, variable, fallback } of GATEWAY_SETTINGS) {
    const text = given[name] ?? (env[variable] || fallback);
    const read = readValue(kind, text);
    if (read.ok) values[name] = read.value;
    else errors.push(`${flag} (${variable}) must be ${read.expected}, not ${JSON.stringify(text.slice(0, 100))}.`);
  }
  if (errors.length > 0) return { ok: false, errors };
  const config = Object.freeze(values) as unknown as GatewayConfig;
  if ((config.tlsCert === "") !== (config.tlsKey === "")) errors.push("--tls-cert (TOOLCRIB_TLS_CERT) and --tls-key (TOOLCRIB_TLS_KEY) need each other.");
  const { gatewaySelector: selector, gatewaySelectorModel: model, gatewaySelectorKeyFile: key } = config;
  if ((selector === "") !== (model === "") || (key !== "" && selector === ""))
    errors.push("--gateway-selector (TOOLCRIB_GATEWAY_SELECTOR) and --gateway-selector-model (TOOLCRIB_GATEWAY_SELECTOR_MODEL) need each other, and a key needs both.");
  const exposed = gatewayExposure(config, config.gatewayCallers === "caller");
  errors.push(...exposed.errors);
  return errors.length > 0 ? { ok: false, errors } : { ok: true, config, warnings: exposed.warnings };
}
