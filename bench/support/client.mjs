/** One call at a time by an ordinary grpc-js client: to set a registry up, and to see that its answers are right. */
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Client, credentials } from "@grpc/grpc-js";
import * as wire from "../../dist/gen/toolcrib/v1/registry_service_pb.js";

export const SERVICE = `/${wire.RegistryService.typeName}`;
export { wire };

const CALL_MS = 60_000;
const identity = (bytes) => bytes;

export function encode(name, fields) {
  return Buffer.from(toBinary(wire[`${name}Schema`], create(wire[`${name}Schema`], fields)));
}

export function connect(scope, address) {
  const client = new Client(address, credentials.createInsecure());
  scope.defer(() => client.close());
  const raw = (path, request) =>
    new Promise((resolve, reject) => {
      const done = (error, answer) => (error ? reject(error) : resolve(answer));
      client.makeUnaryRequest(path, identity, identity, request, { deadline: Date.now() + CALL_MS }, done);
    });
  return {
    raw,
    async call(method, fields = {}) {
      const bytes = await raw(`${SERVICE}/${method}`, encode(`${method}Request`, fields));
      return fromBinary(wire[`${method}ResponseSchema`], bytes);
    },
  };
}

/** A Register of definitions (bytes), inline, for an hour, by an instance that is never dialled. */
export function declared(serverId, definitions, more = {}) {
  return {
    serverId,
    instanceId: "bench-instance",
    retention: { case: "leaseTtl", value: { seconds: 3_600n } },
    offer: { case: "declared", value: { tools: definitions.map((definition) => ({ definition })) } },
    ...more,
  };
}
