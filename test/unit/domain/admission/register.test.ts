import { DEFAULT_PROBING } from "../../../../src/domain/health/probing.js";
import { describe, expect, it } from "vitest";
import type { RegisterInput } from "../../../../src/catalogue/api.js";
import { checkRegister } from "../../../../src/domain/admission/register.js";
import { admitDeclaredTool, checkDeclaredTool } from "../../../../src/domain/admission/tool.js";
import type { DeclaredLabel } from "../../../../src/domain/label.js";
import { EMPTY_STUB } from "../../../../src/domain/stub.js";

const definition = (name: string, more: object = {}): Uint8Array =>
  Buffer.from(JSON.stringify({ name, inputSchema: { type: "object" }, ...more }));
const label = (name: string, more: Partial<DeclaredLabel> = {}): DeclaredLabel => ({ ...EMPTY_STUB, name, ...more });
const inline = (name: string) => ({ label: undefined, definition: definition(name) });

const good: RegisterInput = {
  namespace: "",
  serverId: "memory",
  instanceId: "instance-1",
  endpoint: "",
  transport: "streamable-http",
  title: "Memory",
  tags: ["a:b"],
  retention: { kind: "leased", ttlMs: undefined },
  offer: { kind: "declared", tools: [inline("a"), inline("b")] },
  etag: "",
  requestId: "",
  validateOnly: false,
  allowEmpty: false,
  strict: false,
  credential: "",
  sharePrivate: false,
  probing: DEFAULT_PROBING,
};

const faults = (more: Partial<RegisterInput>): string[] =>
  checkRegister({ ...good, ...more }).map((v) => `${v.field}: ${v.description}`);

describe("a Register", () => {
  it("is accepted when nothing is wrong with it", () => {
    expect(faults({})).toEqual([]);
    expect(faults({ retention: { kind: "standing" }, instanceId: "", endpoint: "http://h/", offer: { kind: "introspect" } })).toEqual([]);
    expect(faults({ retention: { kind: "leased", ttlMs: 10_000 } })).toEqual([]);
    expect(faults({ retention: { kind: "leased", ttlMs: 3_600_000 } })).toEqual([]);
    expect(faults({ offer: { kind: "declared", tools: [] }, allowEmpty: true })).toEqual([]);
  });

  it.each<[string, Partial<RegisterInput>, RegExp]>([
    ["a bad namespace", { namespace: "A" }, /^namespace: "A" holds U\+0041/],
    ["no server_id", { serverId: "" }, /^server_id: is empty/],
    ["dots as server_id", { serverId: ".." }, /^server_id: ".."/],
    ["no instance_id", { instanceId: "" }, /^instance_id: is empty/],
    ["a short instance_id, though standing", { instanceId: "x", retention: { kind: "standing" }, endpoint: "http://h/" }, /^instance_id: is 1 char/],
    ["a file endpoint", { endpoint: "file:///x" }, /^endpoint: has the scheme "file"/],
    ["standing without endpoint", { retention: { kind: "standing" } }, /^endpoint: is empty, but a standing/],
    ["introspect without endpoint", { offer: { kind: "introspect" } }, /^endpoint: is empty, but introspect/],
    [
      "a tool without definition nor endpoint",
      { offer: { kind: "declared", tools: [inline("a"), { label: label("b"), definition: undefined }] } },
      /^endpoint: is empty, but declared.tools\[1\] comes without its definition/,
    ],
    ["a hidden character in its title", { title: "a\u202eb" }, /^title: holds the hidden character U\+202E/],
    ["a bad tag", { tags: ["ok", "Not"] }, /^tags\[1\]: "Not" holds U\+004E/],
    ["33 tags", { tags: Array.from({ length: 33 }, (_, i) => `t${i}`) }, /^tags: holds 33 tags, the limit is 32/],
    ["TTL 0", { retention: { kind: "leased", ttlMs: 0 } }, /^lease_ttl: is 0 s, a lease lasts 10 s to 3600 s/],
    ["TTL of ten years", { retention: { kind: "leased", ttlMs: 315_360_000_000 } }, /^lease_ttl: is 315360000 s/],
    ["TTL that is no number", { retention: { kind: "leased", ttlMs: Number.NaN } }, /^lease_ttl: is NaN s/],
    ["no offer", { offer: { kind: "none" } }, /^offer: is missing/],
    ["an empty set", { offer: { kind: "declared", tools: [] } }, /^declared.tools: is empty.*set allow_empty/],
    ["a long request_id", { requestId: "r".repeat(65) }, /^request_id: is 65 characters long, the limit is 64/],
    ["a long etag", { etag: "e".repeat(513) }, /^etag: is 513 characters long, the limit is 512/],
    [
      "too many tools",
      { offer: { kind: "declared", tools: Array.from({ length: 10_001 }, () => inline("a")) } },
      /^declared.tools: holds 10001 tools, the limit is 10000/,
    ],
    [
      "the same tool twice",
      { endpoint: "http://h/", offer: { kind: "declared", tools: [inline("a"), inline("b"), { label: label("a"), definition: undefined }] } },
      /^declared.tools\[2\].stub.name: names the tool "a" of declared.tools\[0\] again/,
    ],
    [
      "the same definition twice",
      { offer: { kind: "declared", tools: [inline("a"), inline("a")] } },
      /^declared.tools\[1\].definition: names the tool "a" of declared.tools\[0\] again/,
    ],
  ])("with %s is refused", (_, more, fault) => {
    const found = faults(more);
    expect(found).toHaveLength(1);
    expect(found[0]).toMatch(fault);
  });

  it.each([
    ["intervalMs", "interval", 2_000, 3_600_000],
    ["timeoutMs", "timeout", 100, 30_000],
    ["fall", "fall", 1, 10],
    ["rise", "rise", 1, 10],
  ] as const)("with a probe's %s outside its bounds is refused, and accepted within", (key, field, min, max) => {
    const asked = (value: number) => faults({ probing: { ...DEFAULT_PROBING, [key]: value } });
    for (const value of [0, min, max]) expect(asked(value)).toEqual([]);
    for (const value of [-1, max + 1, Number.NaN, ...(min > 1 ? [min - 1] : [])]) {
      expect(asked(value)).toHaveLength(1);
      expect(asked(value)[0]).toMatch(new RegExp(`^probe.${field}: is ${value}.* lies between ${min} and ${max}.*leave it out`));
    }
  });

  it("names everything that is wrong with its probe settings at once", () => {
    expect(faults({ probing: { intervalMs: 1, timeoutMs: 1, fall: 11, rise: 11, off: true } })).toHaveLength(4);
  });

  it("names everything that is wrong at once", () => {
    const all = faults({ namespace: "A", serverId: "", instanceId: "", title: "\0", tags: ["", "X"], retention: { kind: "leased", ttlMs: 1 }, offer: { kind: "none" }, requestId: "\n" });
    expect(all.length).toBeGreaterThanOrEqual(9);
  });

  it("is not refused for a fault inside one tool", () => {
    expect(faults({ offer: { kind: "declared", tools: [inline("a b"), inline("ok")] } })).toEqual([]);
  });
});

describe("a declared tool", () => {
  it("gets its label from both parts, the declared one first", () => {
    const bytes = definition("a", { title: "T", description: "One. Two. Three.", annotations: { readOnlyHint: true, openWorldHint: true } });
    const admitted = admitDeclaredTool({ label: label("", { title: "Mine", tags: ["z", "a"], hints: { openWorld: false } }), definition: bytes }, 0);
    expect(admitted).toMatchObject({
      ok: true,
      label: { name: "a", title: "Mine", briefDescription: "One. Two.", tags: ["a", "z"], hints: { readOnly: true, openWorld: false }, sizeBytes: bytes.byteLength },
    });
  });

  it("needs no definition, and then has neither digest nor size", () => {
    expect(admitDeclaredTool({ label: label("a"), definition: undefined }, 0)).toMatchObject({ ok: true, definition: undefined, label: { name: "a", digest: "", sizeBytes: 0 } });
  });

  it.each<[string, { label?: DeclaredLabel; definition?: Uint8Array }, RegExp]>([
    ["no parts", {}, /^declared.tools\[3\] holds neither stub nor definition/],
    ["no name", { label: label("") }, /^declared.tools\[3\].stub.name is empty/],
    ["a bad name", { label: label("a/b") }, /stub.name "a\/b" holds U\+002F/],
    ["a bad definition", { definition: definition("a", { inputSchema: null }) }, /^declared.tools\[3\].definition: \/inputSchema must be/],
    ["two names", { label: label("b"), definition: definition("a") }, /stub.name is "b", but the definition is of "a"/],
    ["a digest of something else", { label: label("a", { digest: `sha256:${"0".repeat(64)}` }), definition: definition("a") }, /stub.digest is "sha256:0+", but the definition sent along has sha256:/],
    ["a malformed digest", { label: label("a", { digest: "md5:1" }) }, /stub.digest is "md5:1", a digest is sha256:/],
    ["a long brief description", { label: label("a", { briefDescription: "x".repeat(601) }) }, /stub.brief_description is 601 characters long, the limit is 600/],
    ["hidden text", { label: label("a", { useWhen: "x\u200b" }) }, /stub.use_when holds the hidden character U\+200B/],
    ["a bad tag", { label: label("a", { tags: ["ok", "no no"] }) }, /stub.tags\[1\] "no no" holds U\+0020/],
    ["an empty keyword", { label: label("a", { keywords: [""] }) }, /stub.keywords\[0\] is empty/],
    ["too many substitutes", { label: label("a", { substitutes: Array.from({ length: 9 }, () => "b") }) }, /stub.substitutes holds 9 entries, the limit is 8/],
    ["a bad substitute", { label: label("a", { substitutes: ["Server/x"] }) }, /stub.substitutes\[0\] "Server" holds U\+0053/],
    ["an empty scope", { label: label("a", { requires: [{ kind: "scope", value: "" }] }) }, /stub.requires\[0\] is empty: a required scope/],
    ["a bad required tool", { label: label("a", { requires: [{ kind: "tool", value: "a b" }] }) }, /stub.requires\[0\] "a b" holds/],
    ["a relative schema_uri", { label: label("a", { schemaUri: "x" }) }, /stub.schema_uri is no absolute URI/],
    [
      "too large a label",
      { label: label("a", { requires: Array.from({ length: 16 }, () => ({ kind: "scope" as const, value: "字".repeat(200) })), keywords: Array.from({ length: 32 }, () => "字".repeat(64)), useWhen: "字".repeat(400) }) },
      /stub has about \d+ bytes, the limit is 16384/,
    ],
  ])("with %s is rejected", (_, tool, reason) => {
    const reasons = checkDeclaredTool({ label: tool.label, definition: tool.definition }, 3);
    expect(reasons).toHaveLength(1);
    expect(reasons[0]).toMatch(reason);
  });

  it("is rejected by name", () => {
    expect(admitDeclaredTool({ label: undefined, definition: definition("int", { inputSchema: { type: "int" } }) }, 0)).toMatchObject({ ok: false, name: "int" });
  });
});
