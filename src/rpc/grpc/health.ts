import type { Server } from "@grpc/grpc-js";
import { HealthImplementation } from "grpc-health-check";
import { SERVICE } from "../services.js";

/** `grpc.health.v1` for the whole server (empty name) and for RegistryService: not serving until said otherwise. */
export class Health {
  private readonly implementation = new HealthImplementation({ "": "NOT_SERVING", [SERVICE]: "NOT_SERVING" });

  addTo(server: Server): void {
    this.implementation.addToServer(server);
  }

  set(serving: boolean): void {
    const status = serving ? "SERVING" : "NOT_SERVING";
    this.implementation.setStatus("", status);
    this.implementation.setStatus(SERVICE, status);
  }
}
