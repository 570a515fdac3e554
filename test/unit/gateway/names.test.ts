import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { exposedName, toolMeant } from "../../../src/gateway/names.js";

const serverId = fc.stringMatching(/^[a-z0-9][a-z0-9._-]{0,62}$/);
const toolName = fc.stringMatching(/^[A-Za-z0-9_.-]{1,128}$/);
const toolId = fc.tuple(serverId, toolName).map(([s, t]) => `${s}/${t}`);

describe("exposed names", () => {
  it("are readable where nothing speaks against it", () => {
    expect(exposedName("erp/close_order")).toBe("erp__close_order");
    expect(exposedName("my-files/read.text")).toMatch(/^my-files__read_text_[0-9a-f]{10}$/);
  });

  it("keep apart what would look alike", () => {
    const alike = ["a/b__c", "a__b/c", "a_/_b", "a/__b", "a__/b", "a.b/c", "a_b/c", "a/b.c", "a/b_c", "a/b-c"];
    expect(new Set(alike.map(exposedName)).size).toBe(alike.length);
  });

  it("fit every client, lead back, and never collide", () => {
    fc.assert(
      fc.property(fc.uniqueArray(toolId, { minLength: 1, maxLength: 30 }), (ids) => {
        const names = ids.map(exposedName);
        expect(new Set(names).size).toBe(ids.length);
        for (const [i, name] of names.entries()) {
          expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
          expect(toolMeant(name, ids)).toEqual({ toolId: ids[i] });
        }
      }),
    );
  });

  it("cannot be imitated: a tool that is named like another's hashed name gets another one", () => {
    const hashed = exposedName("a.b/c");
    const [server = "", tool = ""] = hashed.split("__");
    expect(exposedName(`${server}/${tool}`)).not.toBe(hashed);
  });

  it("may be left out for the server's own, where one tool alone has it", () => {
    expect(toolMeant("greet", ["one/greet", "one/add"])).toEqual({ toolId: "one/greet" });
    expect(toolMeant("greet", ["one/greet", "two/greet"])).toEqual({ several: ["one/greet", "two/greet"] });
    expect(toolMeant("greet", ["one/add"])).toBeUndefined();
  });
});
