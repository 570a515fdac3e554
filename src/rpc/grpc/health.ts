import type { Server } from "@grpc/grpc-js";
import { HealthImplementation } from "grpc-health-check";
import { SERVICES } from "../services/index.js";

/** The whole server has the empty name. */
const NAMES = ["", ...SERVICES.map(({ typeName }) => typeName)];

/** `grpc.health.v1` for the whole server and for each service of the API: not serving until said otherwise. */
export class Health {
  private readonly implementation = new HealthImplementation(
    Object.fromEntries(NAMES.map((name) => [name, "NOT_SERVING"])),
  );

  addTo(server: Server): void {
    this.implementation.addToServer(server);
  }

  set(serving: boolean): void {
    for (const name of NAMES) this.implementation.setStatus(name, serving ? "SERVING" : "NOT_SERVING");
  }
}
