import { describe, expect, it } from "vitest";
import { PATHS, SERVICES, UNARY, WATCH } from "../../../src/rpc/services/index.js";

describe("the table of methods", () => {
  it("has every method of every service, and no other", () => {
    expect([...UNARY.keys(), WATCH].sort()).toEqual([...PATHS].sort());
    expect(SERVICES.map((s) => s.typeName)).toEqual(["RegistryService", "GateService", "ToolsetService", "AdminService"].map((s) => `toolcrib.v1.${s}`));
  });

  it("ties each to its own messages", () => {
    for (const service of SERVICES)
      for (const { name, input, output, methodKind } of service.methods) {
        const unary = UNARY.get(`/${service.typeName}/${name}`);
        expect(unary === undefined, name).toBe(methodKind !== "unary");
        if (unary) expect([unary.input, unary.output], name).toEqual([input, output]);
      }
  });

  it("serves to the last moment what keeps or ends a lease, and nothing else", () => {
    const served = [...UNARY].filter(([, { draining }]) => draining === "served").map(([path]) => path);
    expect(served.map((path) => path.split("/")[2])).toEqual(["Renew", "Deregister"]);
  });
});
