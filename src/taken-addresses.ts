/** Which addresses of the listeners are taken, all of them, before any is listened on. */
import { createServer } from "node:net";
import type { Config, HostPort } from "./config/setting.js";
import { formatAddress } from "./config/values.js";

/** One sentence each. Whatever else is wrong with an address is told by the listener itself. */
export async function takenAddresses({ grpcAddress, httpAddress, opsAddress, gateway, gatewayAddress }: Config): Promise<readonly string[]> {
  const listeners: readonly (readonly [what: string, flag: string, variable: string, address: HostPort | "off"])[] = [
    ["gRPC", "--grpc-address", "TOOLCRIB_GRPC_ADDRESS", grpcAddress],
    ["HTTP", "--http-address", "TOOLCRIB_HTTP_ADDRESS", httpAddress],
    ["ops", "--ops-address", "TOOLCRIB_OPS_ADDRESS", opsAddress],
    ["gateway", "--gateway-address", "TOOLCRIB_GATEWAY_ADDRESS", gateway ? gatewayAddress : "off"],
  ];
  const sentences: string[] = [];
  for (const [what, flag, variable, address] of listeners) {
    if (address === "off" || address.port === 0 || !(await isTaken(address))) continue;
    const where = formatAddress(address);
    sentences.push(`The ${what} address ${where} is taken by another program: choose another with ${flag} (${variable}).`);
  }
  return sentences;
}

function isTaken({ host, port }: HostPort): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) => resolve(error.code === "EADDRINUSE"));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(false)));
  });
}
