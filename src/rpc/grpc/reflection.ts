/** Server reflection (v1 and v1alpha) over the descriptors that the generated code carries. */
import { type DescFile, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import type { Server } from "@grpc/grpc-js";
import { ReflectionService } from "@grpc/reflection";
import { file_google_rpc_error_details } from "../../gen/google/rpc/error_details_pb.js";
import { file_google_rpc_status } from "../../gen/google/rpc/status_pb.js";
import { file_grpc_health_v1_health } from "../../gen/grpc/health/v1/health_pb.js";
import { file_toolcrib_v1_error } from "../../gen/toolcrib/v1/error_pb.js";
import { asBuffer } from "../answers.js";
import { SERVICES } from "../services/index.js";

/**
 * The files of the API, of the error details and of the health service; imports follow by themselves. The descriptors that
 * the health package carries name their types in a relative way, which other languages' tools cannot resolve.
 */
const ROOTS: readonly DescFile[] = [
  ...SERVICES.map(({ file }) => file),
  file_toolcrib_v1_error,
  file_google_rpc_status,
  file_google_rpc_error_details,
  file_grpc_health_v1_health,
];

export function addReflection(server: Server): void {
  const root = { format: "Protocol Buffer 3 DescriptorProto", type: {}, fileDescriptorProtos: encodedFiles() } as const;
  new ReflectionService({ toolcrib: root }).addToServer(server);
}

function encodedFiles(): Buffer[] {
  const seen = new Map<string, Buffer>();
  const visit = (file: DescFile): void => {
    if (seen.has(file.proto.name)) return;
    seen.set(file.proto.name, asBuffer(toBinary(FileDescriptorProtoSchema, file.proto)));
    file.dependencies.forEach(visit);
  };
  ROOTS.forEach(visit);
  return [...seen.values()];
}
