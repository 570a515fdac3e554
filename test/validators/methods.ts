/** The unary methods of the API that histories tell of. */
import { AdminService } from "../../src/gen/toolcrib/v1/admin_service_pb.js";
import { RegistryService } from "../../src/gen/toolcrib/v1/registry_service_pb.js";

const { register, renew, deregister, getStubs, getFullSchema, batchGetFullSchemas, listServers, getServer } =
  RegistryService.method;
const { isolateServer, resumeServer, refreshServer, quarantineTool, approveTool } = AdminService.method;

export const METHODS = {
  register,
  renew,
  deregister,
  getStubs,
  getFullSchema,
  batchGetFullSchemas,
  listServers,
  getServer,
  isolateServer,
  resumeServer,
  refreshServer,
  quarantineTool,
  approveTool,
} as const;

export type MethodName = keyof typeof METHODS;

export function isMethod(name: string): name is MethodName {
  return name in METHODS;
}
