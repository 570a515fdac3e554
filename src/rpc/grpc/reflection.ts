/** Server reflection (v1 and v1alpha) over the descriptors that the generated code carries. */
import { type DescFile, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import type { Server } from "@grpc/grpc-js";
import { ReflectionService } from "@grpc/reflection";
import { service as healthService } from "grpc-health-check";
import { file_google_rpc_error_details } from "../../gen/google/rpc/error_details_pb.js";
import { file_google_rpc_status } from "../../gen/google/rpc/status_pb.js";
import { file_toolcrib_v1_error } from "../../gen/toolcrib/v1/error_pb.js";
import { file_toolcrib_v1_registry_service } from "../../gen/toolcrib/v1/registry_service_pb.js";
import { asBuffer } from "../answers.js";

/** The API's files and those that error details need; imports follow by themselves. */
const ROOTS: readonly DescFile[] = [
  file_toolcrib_v1_registry_service,
  file_toolcrib_v1_error,
  file_google_rpc_status,
  file_google_rpc_error_details,
];

export function addReflection(server: Server): void {
  const files = [...apiFiles(), ...healthFiles()];
  const root = { format: "Protocol Buffer 3 DescriptorProto", type: {}, fileDescriptorProtos: files } as const;
  new ReflectionService({ toolcrib: root }).addToServer(server);
}

function apiFiles(): Buffer[] {
  const seen = new Map<string, Buffer>();
  const visit = (file: DescFile): void => {
    if (seen.has(file.proto.name)) return;
    seen.set(file.proto.name, asBuffer(toBinary(FileDescriptorProtoSchema, file.proto)));
    file.dependencies.forEach(visit);
  };
  ROOTS.forEach(visit);
  return [...seen.values()];
}

function healthFiles(): Buffer[] {
  return Object.values(healthService).flatMap((method) => method.requestType.fileDescriptorProtos);
}
