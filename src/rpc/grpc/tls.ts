import { ServerCredentials } from "@grpc/grpc-js";
import type { Tls } from "../tls.js";

export function serverCredentials(tls: Tls | undefined): ServerCredentials {
  return tls ? new ReloadedCredentials(tls) : ServerCredentials.createInsecure();
}

/** grpc-js's own credentials that watch files end the process when a key does not fit its certificate; these are checked first. */
class ReloadedCredentials extends ServerCredentials {
  constructor(tls: Tls) {
    const { requestCert, rejectUnauthorized, ...context } = tls.serverOptions;
    super({ requestCert, rejectUnauthorized }, context);
    tls.onChange((changed) => this.updateSecureContextOptions(changed));
  }

  override _equals(other: ServerCredentials): boolean {
    return this === other;
  }
}
