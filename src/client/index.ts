/** `toolcrib/client`: the registry from a program's side. */
export type { RegistryAccess } from "./access.js";
export type { CallOptions } from "./connection.js";
export { RegistryConnection } from "./connection.js";
export type { CodeName, Reason, RegistryErrorFacts } from "./registry-error.js";
export { RegistryError } from "./registry-error.js";
export type { Target } from "./target.js";
export { DEFAULT_ADDRESS, TargetError, parseTarget } from "./target.js";
export type { FollowedServer } from "./follower/catalogue.js";
export type { Follower } from "./follower/follower.js";
export { createFollower } from "./follower/follower.js";
export type { FollowerOptions } from "./follower/options.js";
export type { WatchSource } from "./follower/source.js";
export type { CatalogueChange, FollowerEvents, FollowerState, RelistCause, StaleWhy } from "./follower/state.js";
export type { Event, WatchResponse } from "../gen/toolcrib/v1/registry_service_pb.js";
export { EventType } from "../gen/toolcrib/v1/registry_service_pb.js";
export type { Stub } from "../gen/toolcrib/v1/stub_pb.js";
export { Availability } from "../gen/toolcrib/v1/stub_pb.js";
export type { RandomSource, Timers } from "./timers.js";
