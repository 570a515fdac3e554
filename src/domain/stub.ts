/** The label of a tool as plain data. Its stored form is an encoded `toolcrib.v1.Stub` without availability. */
export interface StubFields {
  readonly serverId: string;
  readonly name: string;
  readonly title: string;
  readonly briefDescription: string;
  /** Tags of the server and of the tool together, sorted, without repeats. */
  readonly tags: readonly string[];
  readonly keywords: readonly string[];
  readonly useWhen: string;
  readonly schemaUri: string;
  readonly hints: AnnotationHints;
  readonly requires: readonly Precondition[];
  readonly substitutes: readonly string[];
  /** `sha256:…`, or empty until the definition was first seen. */
  readonly digest: string;
  /** Bytes of the definition, 0 while unknown. */
  readonly sizeBytes: number;
}

/** MCP annotation hints; absent stays absent. */
export interface AnnotationHints {
  readonly readOnly?: boolean;
  readonly destructive?: boolean;
  readonly idempotent?: boolean;
  readonly openWorld?: boolean;
}

export type Precondition =
  | { readonly kind: "scope"; readonly value: string }
  | { readonly kind: "state"; readonly value: string }
  | { readonly kind: "tool"; readonly value: string };

/** Bytes ÷ 4: an estimate, and called one wherever it is shown. */
export function estimatedTokens(sizeBytes: number): number {
  return Math.ceil(sizeBytes / 4);
}

export const EMPTY_STUB: Omit<StubFields, "serverId" | "name"> = {
  title: "",
  briefDescription: "",
  tags: [],
  keywords: [],
  useWhen: "",
  schemaUri: "",
  hints: {},
  requires: [],
  substitutes: [],
  digest: "",
  sizeBytes: 0,
};
