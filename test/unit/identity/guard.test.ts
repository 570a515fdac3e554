import { expect, it } from "vitest";
import type { RegistryApi } from "../../../src/catalogue/api.js";
import { everything } from "../../../src/domain/filter.js";
import type { GateApi } from "../../../src/gate/api.js";
import { asking } from "../../support/gate.js";
import { PLAIN_GATE, plainToolsets } from "../../integration/grpc-support.js";
import { GuardedApi, UNSEEN_NAMESPACE } from "../../../src/rpc/identity/guard.js";

it("P9: notices are those of a namespace that the caller may read, or of none", () => {
  const asked: string[] = [];
  const api = { notices: (namespace: string) => (asked.push(namespace), []) } as Partial<RegistryApi> as RegistryApi;
  const guarded = new GuardedApi({ registry: api, gate: PLAIN_GATE, toolsets: plainToolsets() }, { id: "alice", grants: [{ role: "reader", namespaces: ["a", "default"] }] });
  for (const namespace of ["a", "", "b"]) guarded.notices(namespace);
  expect(asked).toEqual(["a", "default", UNSEEN_NAMESPACE]);
});

it("P9: tools are found in a namespace that the caller may read, or in none", async () => {
  const asked: string[] = [];
  const gate: GateApi = {
    ...PLAIN_GATE,
    find: (query, deadlineMs) => {
      asked.push(query.filter.namespace);
      return PLAIN_GATE.find(query, deadlineMs);
    },
  };
  const guarded = new GuardedApi({ registry: {} as RegistryApi, gate, toolsets: plainToolsets() }, { id: "alice", grants: [{ role: "reader", namespaces: ["a"] }] });
  for (const namespace of ["a", "b"]) await guarded.gate.find(asking("x", { filter: everything(namespace) }), undefined);
  expect(asked).toEqual(["a", UNSEEN_NAMESPACE]);
});
