/** Runs a gateway by itself, until it is ended. */
import type { Registry } from "prom-client";
import type { Logger } from "./catalogue/ports.js";
import type { GatewayStart } from "./cli/gateway.js";
import { composeGateway, composeStdioGateway, gatewayTarget } from "./compose-gateway.js";
import type { GatewayConfig } from "./config/gateway.js";
import { formatAddress } from "./config/values.js";
import type { Own } from "./domain/admission/egress.js";
import { sentencesOf } from "./files/problems.js";
import type { Gateway } from "./gateway/gateway.js";
import { createGatewayMetrics } from "./ops/gateway-metrics.js";
import { createLogger } from "./ops/logging.js";
import { type OpsServer, startOps } from "./ops/server.js";
import { systemClock, systemRandom } from "./ops/system.js";

/** Answers the exit code. */
export async function runGateway(config: GatewayConfig, start: GatewayStart): Promise<number> {
  const { registry, namespace, stdio, version, env, ending, say } = start;
  const log = createLogger({ level: config.logLevel, ...(stdio && { destination: process.stderr }) });
  const world = { clock: systemClock, random: systemRandom, log, version, env };
  try {
    const target = gatewayTarget(registry, env);
    const own = ownOf(target.address);
    const place = { target, namespace, identified: config.gatewayCallers === "caller", own };
    if (stdio) {
      await composeStdioGateway(config, place, world, ending);
      return 0;
    }
    const metrics = createGatewayMetrics(version);
    const gateway = await composeGateway(config, place, world, metrics.gateway);
    const ops = await opsOf(config, gateway, metrics.registry, log);
    if (ops) own.push({ what: "this gateway's own ops listener", ...ops.address });
    const scheme = config.tlsCert === "" ? "http" : "https";
    say(`toolcrib gateway ${version} is up: MCP ${scheme}://${formatAddress(gateway.address)}/mcp, registry ${target.address}${ops ? `, ops http://${formatAddress(ops.address)}` : ""}`);
    await ended(ending);
    log.info({}, "stopping");
    await gateway.stop();
    await ops?.close();
    log.info({}, "stopped");
    return 0;
  } catch (error) {
    for (const sentence of sentencesOf(error)) process.stderr.write(`toolcrib: ${sentence}\n`);
    return 1;
  }
}

/** Rejects with one sentence, and with the gateway stopped, when its address cannot be listened on. */
async function opsOf({ gatewayOpsAddress: address }: GatewayConfig, gateway: Gateway, metrics: Registry, log: Logger): Promise<OpsServer | undefined> {
  if (address === "off") return undefined;
  const ready = (): readonly string[] => [gateway.notReady()].filter((why) => why !== "");
  try {
    return await startOps({ address, ready, metrics, log, setting: "--gateway-ops-address (TOOLCRIB_GATEWAY_OPS_ADDRESS)" });
  } catch (error) {
    await gateway.stop();
    throw error;
  }
}

function ownOf(address: string): Own[] {
  const { hostname: host, port } = new URL(`http://${address}`);
  return [{ what: "the registry's own gRPC listener", host, port: Number(port) }];
}

function ended(ending: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (ending.aborted) return resolve();
    ending.addEventListener("abort", () => resolve(), { once: true });
  });
}
