/** Every setting of the registry, once: parsing, `--help` and the README's table are made from this table. */
import type { Setting } from "./setting.js";
import { BOUNDS } from "./settings/bounds.js";
import { GATE } from "./settings/gate.js";
import { GATEWAY } from "./settings/gateway.js";
import { IDENTITY } from "./settings/identity.js";
import { MEMORY } from "./settings/memory.js";
import { LISTENERS, PROCESS } from "./settings/process.js";
import { RULES } from "./settings/rules.js";
import { PROBES, UPSTREAM } from "./settings/servers.js";
import { STORE } from "./settings/store.js";

/** In the order in which they are shown. */
export const SETTINGS: readonly Setting[] = [
  ...LISTENERS,
  ...STORE,
  ...UPSTREAM,
  ...BOUNDS,
  ...PROBES,
  ...MEMORY,
  ...RULES,
  ...GATE,
  ...GATEWAY,
  ...PROCESS,
  ...IDENTITY,
];

/** Variables of the same family that other programs of the project read. */
export const CLIENT_VARIABLES: readonly string[] = [
  "TOOLCRIB_URL",
  "TOOLCRIB_NAMESPACE",
  "TOOLCRIB_TOKEN",
  "TOOLCRIB_TOKEN_FILE",
  "TOOLCRIB_CA",
  "TOOLCRIB_CERT",
  "TOOLCRIB_KEY",
];
