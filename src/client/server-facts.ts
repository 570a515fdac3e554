/** What a registry says of a server, for those who do not read protobuf themselves. */
import type { RegistryConnection } from "./connection.js";

export { BreakerState, Transport } from "../gen/toolcrib/v1/server_pb.js";
export { Availability } from "../gen/toolcrib/v1/stub_pb.js";
export type { Instance, Server } from "../gen/toolcrib/v1/server_pb.js";

/** The part of a connection that looks servers up. */
export type ServerSource = Pick<RegistryConnection, "getServer">;
