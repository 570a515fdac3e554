/** What a unary method is to both listeners: a decoded request in, an answer as bytes out. */
import {
  type DescMessage,
  type DescMethod,
  type Message,
  type MessageShape,
  fromBinary,
  toBinary,
} from "@bufbuild/protobuf";
import { Fault } from "../../domain/fault.js";
import type { Api } from "../api.js";

export interface UnaryContext {
  /** Time the caller still has, ms; undefined when it set no deadline. */
  readonly deadlineMs: number | undefined;
}

export interface Answer {
  /** An encoded message, in parts: stored bytes are copied once, by whoever sends them. Never to be written to. */
  readonly parts: readonly Uint8Array[];
  /** Sent as the `toolcrib-stale` header. */
  readonly stale: boolean;
  /** The same request of the same caller is answered alike as long as `RegistryApi.version` stands. */
  readonly repeats?: boolean;
}

/** Length of an answer in bytes. */
export function sizeOf({ parts }: Answer): number {
  let size = 0;
  for (const part of parts) size += part.byteLength;
  return size;
}

export interface UnaryMethod {
  /** As `pathOf` gives it. */
  readonly path: string;
  /** Whether a replica that stops still takes it. */
  readonly draining: "served" | "refused";
  /** Reads whose answers may be marked `repeats`. */
  readonly repeatable: boolean;
  readonly input: DescMessage;
  readonly output: DescMessage;
  /** Takes a message of `input`; the answer's body is an encoded `output`. */
  handle(api: Api, request: Message, context: UnaryContext): Promise<Answer>;
}

/** Throws MALFORMED_MESSAGE when the bytes are not a message of this type, or hold text that is not UTF-8. */
export function decode<S extends DescMessage>(schema: S, bytes: Uint8Array): MessageShape<S> {
  try {
    return fromBinary(schema, bytes);
  } catch (cause) {
    const message = `the request is not an encoded ${schema.typeName}, or holds text that is not UTF-8`;
    throw new Fault("MALFORMED_MESSAGE", message, { cause });
  }
}

export function encode<S extends DescMessage>(schema: S, message: MessageShape<S>, stale = false): Answer {
  return { parts: [toBinary(schema, message)], stale };
}

/** A handler tied to the messages of its method; `rules` are what it is beyond a call that a replica that stops refuses. */
export function method<I extends DescMessage, O extends DescMessage>(
  desc: DescMethod & { readonly input: I; readonly output: O },
  handle: (api: Api, request: MessageShape<I>, context: UnaryContext) => Promise<Answer>,
  rules: Partial<Pick<UnaryMethod, "draining" | "repeatable">> = {},
): UnaryMethod {
  const { input, output } = desc;
  const { draining = "refused", repeatable = false } = rules;
  return { path: pathOf(desc), input, output, draining, repeatable, handle: handle as UnaryMethod["handle"] };
}

/** Where a method is called: `/toolcrib.v1.RegistryService/GetStubs`. */
export function pathOf({ parent, name }: DescMethod): string {
  return `/${parent.typeName}/${name}`;
}
