import fc from "fast-check";

type Schema = Record<string, unknown> | boolean;

/** `__proto__` is not among them: the validator that judges the values trips over it. names.test.ts has it. */
const KEYS = ["a", "b", "kind", "$filter", "If-Match", "x.y", "x_y", "very long key ".repeat(6)];
/** Written so, because an object with a `then` looks like a promise to the linter. */
const THEN = "then";
const key = fc.constantFrom(...KEYS);
const ref = fc.constantFrom("#", "#/$defs/one", "#/$defs/two", "#/properties/a", "#/$defs/none", "http://example.org/x", "#anchor");
const types = fc.constantFrom("null", "boolean", "integer", "number", "string", "array", "object");
const scalar = fc.oneof(fc.constantFrom("p", "q", "", "{}", '"x"'), fc.integer({ min: -3, max: 9 }), fc.boolean(), fc.constant(null));

/** Schemas that somebody could write: mostly sound, of any draft, with references, circles and combinators anywhere. */
export const schemas = fc.letrec<{ schema: Schema; object: Schema }>((tie) => {
  const map = fc.dictionary(key, tie("schema"), { maxKeys: 3 });
  const list = fc.array(tie("schema"), { minLength: 1, maxLength: 3 });
  const opt = <T>(arbitrary: fc.Arbitrary<T>) => fc.oneof({ weight: 1, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary });
  const rare = <T>(arbitrary: fc.Arbitrary<T>) => fc.oneof({ weight: 8, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary });
  const compact = (schema: object) => Object.fromEntries(Object.entries(schema).filter(([, value]) => value !== undefined));
  const parts = {
    description: rare(fc.string({ maxLength: 20 })),
    properties: opt(map),
    required: opt(fc.uniqueArray(key, { maxLength: 3 })),
    additionalProperties: opt(fc.oneof(fc.boolean(), tie("schema"))),
    patternProperties: rare(fc.dictionary(fc.constantFrom("^x", "y$"), tie("schema"), { maxKeys: 2 })),
    anyOf: rare(list),
    oneOf: rare(list),
    allOf: rare(list),
    $ref: rare(ref),
  };
  return {
    schema: fc.oneof(
      { depthSize: "xsmall", maxDepth: 2 },
      fc.oneof(
        fc.boolean(),
        fc.record({ type: types }),
        fc.record({ type: fc.uniqueArray(types, { minLength: 1, maxLength: 3 }) }),
        fc.record({ enum: fc.uniqueArray(scalar, { minLength: 1, maxLength: 3 }) }),
        fc.record({ const: scalar }),
        fc.record({ $ref: ref }),
        fc.record({ type: fc.constant("string"), pattern: fc.constantFrom("^p", "(?=p)", "[") }),
        fc.record({ type: fc.constant("integer"), exclusiveMinimum: fc.constantFrom(0, 2.5), default: fc.constant(3) }),
        fc.record({ type: fc.constant("string"), minLength: fc.nat(2), maxLength: fc.constant(4), format: fc.constant("uri") }),
      ),
      fc.record({ type: fc.constant("object"), ...parts }).map(compact),
      fc.record(parts).map(compact),
      fc.record({
        type: fc.constant("array"),
        items: opt(fc.oneof(tie("schema"), list)),
        prefixItems: rare(list),
        minItems: rare(fc.nat(2)),
        uniqueItems: rare(fc.boolean()),
      }).map(compact),
      fc.record({ not: tie("schema"), if: tie("schema"), [THEN]: tie("schema") }),
    ),
    object: fc
      .record({
        ...parts,
        type: fc.constant("object"),
        $defs: opt(fc.record({ one: tie("schema"), two: tie("schema") })),
        if: rare(tie("schema")),
        [THEN]: rare(tie("schema")),
        not: rare(tie("schema")),
        dependentRequired: rare(fc.constant({ a: ["b"] })),
        dependentSchemas: rare(fc.dictionary(key, tie("schema"), { maxKeys: 2 })),
      })
      .map(compact),
  };
}).object as fc.Arbitrary<Record<string, unknown>>;

/** Anything at all where a schema should be. */
export const rubbish = fc.oneof(
  fc.dictionary(
    fc.constantFrom(
      ..."type properties required items enum const anyOf allOf oneOf $ref $defs pattern minimum minItems additionalProperties dependencies default".split(" "),
    ),
    fc.jsonValue({ maxDepth: 3 }),
  ),
  fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 })),
);
