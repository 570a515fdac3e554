/** Quarantines as bytes: inside of a tool, and in the note that keeps them. */
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import type { QuarantineCodec } from "../../catalogue/ports.js";
import type { Quarantine } from "../../domain/quarantine.js";
import { type QuarantineSchema, QuarantineShelfSchema, type Quarantine as WireQuarantine } from "../../gen/toolcrib/storage/v1/storage_pb.js";

const FORMAT = 1;

/** The note is read by versions that know less: what they add does not raise the format. */
export const quarantineCodec: QuarantineCodec = {
  encodeShelf: (quarantines) =>
    toBinary(QuarantineShelfSchema, create(QuarantineShelfSchema, { format: FORMAT, quarantines: quarantines.map(wireQuarantine) })),
  decodeShelf: (bytes) => {
    const { format, quarantines } = fromBinary(QuarantineShelfSchema, bytes);
    if (format > FORMAT) throw new Error(`quarantines are kept in format ${format}, and this version reads ${FORMAT}: upgrade this replica`);
    return quarantines.map((quarantine) => quarantineOf(quarantine, quarantine.toolName));
  },
};

export function wireQuarantine({ toolName, reason, by, atMs, approvedDigest }: Quarantine): MessageInitShape<typeof QuarantineSchema> {
  return { toolName, reason, by, atMs: BigInt(atMs), approvedDigest };
}

export function quarantineOf({ reason, by, atMs, approvedDigest }: WireQuarantine, toolName: string): Quarantine {
  return { toolName, reason, by, atMs: Number(atMs), approvedDigest };
}
