/** A gateway in a process of its own: the registry's tools for clients that speak only MCP. */
import { Command, Option } from "commander";
import { GATEWAY_SETTINGS, type GatewayConfig, loadGateway } from "../config/gateway.js";
import type { Config } from "../config/setting.js";
import { type Io, line } from "./io.js";
import { type RegistryOptions, withRegistry } from "./options.js";

interface GatewayCommandOptions extends RegistryOptions {
  readonly stdio?: boolean;
}

/** What gateway-main.ts exports for this file, which composes it; it costs the other commands nothing. */
export interface GatewayMain {
  /** Runs until `ending` is aborted, or over stdio until the client goes. Answers the exit code. */
  runGateway(config: GatewayConfig, start: GatewayStart): Promise<number>;
}

export interface GatewayStart {
  readonly registry: string | undefined;
  readonly namespace: string;
  readonly stdio: boolean;
  readonly version: string;
  readonly env: NodeJS.ProcessEnv;
  readonly ending: AbortSignal;
  /** For people. */
  readonly say: (text: string) => void;
}

export function gatewayCommand(io: Io, version: string, setExitCode: (code: number) => void): Command {
  const command = withRegistry(new Command("gateway").description("serve the registry's tools to clients that speak only MCP: over HTTP, or --stdio"))
    .option("--stdio", "serve the one client that started this command over its standard input and output");
  const nameOf = new Map<string, keyof Config>();
  for (const { name, flag, kind, variable, fallback, help } of GATEWAY_SETTINGS) {
    const value = kind.kind === "switch" ? "" : " <value>";
    const option = new Option(`${flag}${value}`, `${help} [${variable}, ${fallback === "" ? "unset by default" : `default ${fallback}`}]`);
    nameOf.set(option.attributeName(), name);
    command.addOption(option);
  }
  return command.action(async (options: GatewayCommandOptions) => {
    const given: Partial<Record<keyof Config, string>> = {};
    for (const [attribute, value] of Object.entries(options)) {
      const name = nameOf.get(attribute);
      if (name !== undefined) given[name] = String(value);
    }
    const loaded = loadGateway(given, io.env);
    if (!loaded.ok) {
      for (const sentence of loaded.errors) line(io.stderr, sentence);
      return setExitCode(2);
    }
    for (const warning of loaded.warnings) line(io.stderr, warning);
    const { runGateway } = (await import(new URL("../gateway-main.js", import.meta.url).href)) as GatewayMain;
    const { registry, namespace = io.env["TOOLCRIB_NAMESPACE"] ?? "", stdio = false } = options;
    // Over stdio, standard output is the protocol's.
    const say = (text: string): void => line(stdio ? io.stderr : io.stdout, text);
    setExitCode(await runGateway(loaded.config, { registry, namespace, stdio, version, env: io.env, ending: io.ending, say }));
  });
}
