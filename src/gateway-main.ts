/** Runs a gateway by itself, until it is ended. */
import type { GatewayStart } from "./cli/gateway.js";
import { composeGateway, composeStdioGateway, gatewayTarget } from "./compose-gateway.js";
import type { GatewayConfig } from "./config/gateway.js";
import { formatAddress } from "./config/values.js";
import type { Own } from "./domain/admission/egress.js";
import { sentencesOf } from "./files/problems.js";
import { createLogger } from "./ops/logging.js";
import { systemClock, systemRandom } from "./ops/system.js";

/** Answers the exit code. */
export async function runGateway(config: GatewayConfig, start: GatewayStart): Promise<number> {
  const { registry, namespace, stdio, version, env, ending, say } = start;
  const log = createLogger({ level: config.logLevel, ...(stdio && { destination: process.stderr }) });
  const world = { clock: systemClock, random: systemRandom, log, version, env };
  try {
    const target = gatewayTarget(registry, env);
    const place = { target, namespace, identified: config.gatewayCallers === "caller", own: ownOf(target.address) };
    if (stdio) {
      await composeStdioGateway(config, place, world, ending);
      return 0;
    }
    const gateway = await composeGateway(config, place, world);
    const scheme = config.tlsCert === "" ? "http" : "https";
    say(`toolcrib gateway ${version} is up: MCP ${scheme}://${formatAddress(gateway.address)}/mcp, registry ${target.address}`);
    await ended(ending);
    log.info({}, "stopping");
    await gateway.stop();
    log.info({}, "stopped");
    return 0;
  } catch (error) {
    for (const sentence of sentencesOf(error)) process.stderr.write(`toolcrib: ${sentence}\n`);
    return 1;
  }
}

function ownOf(address: string): readonly Own[] {
  const { hostname: host, port } = new URL(`http://${address}`);
  return [{ what: "the registry's own gRPC listener", host, port: Number(port) }];
}

function ended(ending: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (ending.aborted) return resolve();
    ending.addEventListener("abort", () => resolve(), { once: true });
  });
}
