/** MCP servers as the gateway calls them: whoever forwards calls needs these names of the rooms below. */
export type { Clock, Logger } from "../catalogue/ports.js";
export type { Credentials } from "./credentials/credentials.js";
export type { Resolve } from "./egress.js";
