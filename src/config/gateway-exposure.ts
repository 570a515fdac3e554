/** Who can reach a gateway, and as whom. */
import type { Config } from "./setting.js";
import { formatAddress, isLoopback } from "./values.js";

/** Whether callers of a gateway in the registry's process show who they are. */
export function showsCallers({ gatewayCallers }: Pick<Config, "gatewayCallers">, identity: boolean): boolean {
  return gatewayCallers === "caller" || (gatewayCallers === "auto" && identity);
}

/** What is to be said of an address that other machines can reach. */
export function gatewayExposure(
  { gatewayAddress, tlsCert, insecure }: Pick<Config, "gatewayAddress" | "tlsCert" | "insecure">,
  identified: boolean,
): { readonly errors: readonly string[]; readonly warnings: readonly string[] } {
  if (isLoopback(gatewayAddress.host)) return { errors: [], warnings: [] };
  const address = formatAddress(gatewayAddress);
  if (identified) {
    const warning = `Tokens travel to ${address} in plain text, and whoever reads one on the way can use it: set --tls-cert and --tls-key, unless TLS ends in front of this gateway.`;
    return { errors: [], warnings: tlsCert === "" ? [warning] : [] };
  }
  if (insecure) return { errors: [], warnings: [`Anyone who can reach ${address} can call every tool that this gateway sees.`] };
  const error =
    `--gateway-address (TOOLCRIB_GATEWAY_ADDRESS) is ${address}, which other machines can reach, and callers are not identified: set ` +
    "--gateway-callers caller, use a loopback address, or add --insecure (TOOLCRIB_INSECURE) if the network itself keeps others out.";
  return { errors: [error], warnings: [] };
}
