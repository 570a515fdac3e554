import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { Fault } from "../../../src/domain/fault.js";
import {
  BatchGetFullSchemasRequestSchema,
  GetServerRequestSchema,
  GetStubsRequestSchema,
  ListServersRequestSchema,
  RegisterRequestSchema,
  RenewRequestSchema,
  type StubView,
  WatchRequestSchema,
} from "../../../src/gen/toolcrib/v1/registry_service_pb.js";
import type { Transport } from "../../../src/gen/toolcrib/v1/server_pb.js";
import type { Availability } from "../../../src/gen/toolcrib/v1/stub_pb.js";
import {
  toSchemasQuery,
  toServerQuery,
  toServersQuery,
  toStubsQuery,
  toWatchInput,
} from "../../../src/rpc/translate/reads.js";
import { toRegisterInput, toRenewals } from "../../../src/rpc/translate/register.js";
import { withoutCredentials } from "../../../src/rpc/translate/server.js";

/** Field and description of everything that is wrong. */
function violationsOf(run: () => unknown): Record<string, string> {
  try {
    run();
  } catch (thrown) {
    if (thrown instanceof Fault && thrown.reason === "INVALID_REQUEST") {
      return Object.fromEntries(thrown.violations.map((v) => [v.field, v.description]));
    }
    throw thrown;
  }
  return {};
}

describe("requests", () => {
  it("select by sorted sets without repeats", () => {
    const filter = { tagsAny: ["b", "a", "b"], serverIds: ["z", "y"], availability: 2, namePrefix: "p" };
    expect(toStubsQuery(create(GetStubsRequestSchema, { filter })).filter).toEqual({
      namespace: "default",
      tagsAny: ["a", "b"],
      tagsAll: [],
      serverIds: ["y", "z"],
      namePrefix: "p",
      availability: "unavailable",
    });
  });

  it("tell everything that is wrong at once, with limit and actual value", () => {
    const long = "x".repeat(600);
    const request = create(GetStubsRequestSchema, {
      namespace: "Über",
      view: 9 as StubView,
      pageSize: 1_001,
      pageToken: long,
      ifRevision: "r",
      minRevision: long,
      filter: {
        tagsAll: [...Array.from({ length: 33 }, (_, i) => `t${i}`)],
        tagsAny: ["UPPER", "x".repeat(64)],
        serverIds: ["-", ...Array.from({ length: 100 }, (_, i) => `s${i}`)],
        availability: 7 as Availability,
      },
    });
    expect(violationsOf(() => toStubsQuery(request))).toEqual({
      namespace: expect.stringContaining('"Über"'),
      "filter.tags_any[0]": expect.stringContaining("UPPER"),
      "filter.tags_any[1]": expect.stringContaining("63 characters"),
      "filter.tags_all": "at most 32 are taken, 33 were sent",
      "filter.server_ids": "at most 100 are taken, 101 were sent",
      "filter.server_ids[0]": expect.any(String),
      "filter.availability": "7 is not a value of Availability",
      view: "9 is not a value of StubView",
      if_revision: expect.stringContaining("excludes page_token"),
      page_size: "1 to 1000, or 0 for the default; 1001 was sent",
      page_token: "at most 512 characters are taken, 600 were sent",
      min_revision: "at most 512 characters are taken, 600 were sent",
    });
  });

  it("have limits at every method", () => {
    expect(violationsOf(() => toServersQuery(create(ListServersRequestSchema, { pageSize: 501 })))).toHaveProperty(
      "page_size",
    );
    expect(violationsOf(() => toServerQuery(create(GetServerRequestSchema, {})))).toEqual({
      server_id: expect.stringContaining("is empty"),
    });
    const watch = create(WatchRequestSchema, { resumeToken: "x".repeat(513), filter: { serverIds: ["A"] } });
    expect(Object.keys(violationsOf(() => toWatchInput(watch)))).toEqual(["filter.server_ids[0]", "resume_token"]);
    const batch = create(BatchGetFullSchemasRequestSchema, { toolIds: ["noslash", `s/${"x".repeat(300)}`] });
    expect(Object.keys(violationsOf(() => toSchemasQuery(batch)))).toEqual(["tool_ids[0]", "tool_ids[1]"]);
    expect(violationsOf(() => toSchemasQuery(create(BatchGetFullSchemasRequestSchema, {})))).toHaveProperty("tool_ids");
    const renew = create(RenewRequestSchema, { leases: Array.from({ length: 1_001 }, () => ({ leaseId: "l" })) });
    expect(violationsOf(() => toRenewals(renew))).toEqual({ leases: "at most 1000 are taken, 1001 were sent" });
    const tools = Array.from({ length: 10_001 }, () => ({}));
    const register = create(RegisterRequestSchema, {
      transport: 5 as Transport,
      offer: { case: "declared", value: { tools } },
    });
    expect(Object.keys(violationsOf(() => toRegisterInput(register)))).toEqual(
      expect.arrayContaining(["transport", "server_id", "declared.tools"]),
    );
  });

  it("keep a precondition that cannot be read as an empty one, so that admission rejects the tool", () => {
    const tools = [{ stub: { name: "a", requires: [{}] } }];
    const register = create(RegisterRequestSchema, { offer: { case: "declared", value: { tools } } });
    expect(toRegisterInput(register).offer).toMatchObject({
      tools: [{ label: { requires: [{ kind: "scope", value: "" }] } }],
    });
  });

  it("do not keep the whole message alive for one definition", () => {
    const message = new Uint8Array(1_000_000);
    const definition = message.subarray(10, 20);
    const register = create(RegisterRequestSchema, { offer: { case: "declared", value: { tools: [{ definition }] } } });
    const { offer } = toRegisterInput(register);
    expect(offer.kind === "declared" && offer.tools[0]?.definition?.buffer.byteLength).toBe(10);
  });
});

describe("withoutCredentials", () => {
  it.each([
    ["", ""],
    ["http://127.0.0.1:1/mcp", "http://127.0.0.1:1/mcp"],
    ["http://127.0.0.1:1", "http://127.0.0.1:1"],
    ["https://u:p@h/x", "https://h/x"],
    ["https://h/x?key=secret&key=other&a=b#frag", "https://h/x?key=***&a=***"],
    ["not a url secret", ""],
  ])("%s is shown as %s", (endpoint, expected) => {
    expect(withoutCredentials(endpoint)).toBe(expected);
  });
});
