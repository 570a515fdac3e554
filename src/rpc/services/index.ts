/** The services of the API and their methods, for every listener. */
import type { DescService } from "@bufbuild/protobuf";
import { AdminService } from "../../gen/toolcrib/v1/admin_service_pb.js";
import { GateService } from "../../gen/toolcrib/v1/gate_service_pb.js";
import { RegistryService } from "../../gen/toolcrib/v1/registry_service_pb.js";
import { ToolsetService } from "../../gen/toolcrib/v1/toolset_service_pb.js";
import { ADMIN } from "./admin.js";
import { GATE } from "./gate.js";
import { type UnaryMethod, pathOf } from "./method.js";
import { REGISTRY } from "./registry.js";
import { TOOLSETS } from "./toolsets.js";

/** In the order in which they are shown. */
export const SERVICES: readonly DescService[] = [RegistryService, GateService, ToolsetService, AdminService];

/** By path. */
export const UNARY: ReadonlyMap<string, UnaryMethod> = new Map(
  [...REGISTRY, ...GATE, ...TOOLSETS, ...ADMIN].map((m) => [m.path, m]),
);

/** The largest message and the longest work of all calls. */
export const REGISTER = pathOf(RegistryService.method.register);

/** The one stream. */
export const WATCH = pathOf(RegistryService.method.watch);

/** Every path, service by service. */
export const PATHS: readonly string[] = SERVICES.flatMap(({ methods }) => methods.map(pathOf));
