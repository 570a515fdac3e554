import { describe, expect, it } from "vitest";
import type { RegistryApi } from "../../../src/catalogue/api.js";
import { AnswerCache } from "../../../src/rpc/answer-cache.js";

const api = () => ({}) as RegistryApi;
const answer = (text: string) => ({ parts: [Buffer.from(text)], stale: false });
const ask = Buffer.from("question");

describe("AnswerCache", () => {
  it("answers the same question of the same caller while the version stands", () => {
    const cache = new AnswerCache();
    const caller = api();
    const key = cache.key(caller, "GetStubs", ask) ?? "";
    cache.put(key, 1, answer("one"));
    expect(cache.get(cache.key(caller, "GetStubs", Buffer.from("question")) ?? "", 1)?.parts.join()).toBe("one");
    expect(cache.get(key, 2)).toBeUndefined();
    cache.put(key, 2, answer("two"));
    expect(cache.get(key, 2)?.parts.join()).toBe("two");
  });

  it("P9: never answers one caller with what another was told, nor one method with another's answer", () => {
    const cache = new AnswerCache();
    const one = api();
    cache.put(cache.key(one, "GetStubs", ask) ?? "", 1, answer("secret"));
    expect(cache.get(cache.key(api(), "GetStubs", ask) ?? "", 1)).toBeUndefined();
    expect(cache.get(cache.key(one, "GetFullSchema", ask) ?? "", 1)).toBeUndefined();
  });

  it("keeps no answer to a long question, and a bounded number of bytes", () => {
    const cache = new AnswerCache();
    const caller = api();
    expect(cache.key(caller, "GetStubs", Buffer.alloc(513))).toBeUndefined();
    const big = answer("x".repeat(1 << 20));
    const keys = Array.from({ length: 40 }, (_, i) => cache.key(caller, "GetStubs", Buffer.from(String(i))) ?? "");
    for (const key of keys) cache.put(key, 1, big);
    expect(keys.filter((key) => cache.get(key, 1)).length).toBeLessThan(33);
    expect(cache.get(keys.at(-1) ?? "", 1)).toBeDefined();
  });
});
