import { describe, expect, it } from "vitest";
import { describeRedis, readRedisAddress } from "../../../src/domain/redis-address.js";

describe("the address of a Redis", () => {
  it.each([
    ["redis://h", { tls: false, user: "", password: "", topology: { kind: "single", node: { host: "h", port: 6_379 }, database: 0 } }],
    [
      "rediss://u:p%40ss%2Fword@[::1]:7/12",
      { tls: true, user: "u", password: "p@ss/word", topology: { kind: "single", node: { host: "::1", port: 7 }, database: 12 } },
    ],
    ["redis://:p@h:1/", { tls: false, user: "", password: "p", topology: { kind: "single", node: { host: "h", port: 1 }, database: 0 } }],
    ["redis://u@h", { tls: false, user: "u", password: "", topology: { kind: "single", node: { host: "h", port: 6_379 }, database: 0 } }],
    [
      "redis+sentinel://u:p@a,b:2,[::1]/main/3",
      {
        tls: false,
        user: "u",
        password: "p",
        topology: {
          kind: "sentinel",
          sentinels: [
            { host: "a", port: 26_379 },
            { host: "b", port: 2 },
            { host: "::1", port: 26_379 },
          ],
          name: "main",
          database: 3,
        },
      },
    ],
    [
      "rediss+cluster://a:1,b",
      {
        tls: true,
        user: "",
        password: "",
        topology: {
          kind: "cluster",
          nodes: [
            { host: "a", port: 1 },
            { host: "b", port: 6_379 },
          ],
        },
      },
    ],
  ])("%s", (text, expected) => {
    expect(readRedisAddress(text)).toEqual(expected);
  });

  it.each([
    ...["", "redis:", "redis://", "redis://h:0", "redis://h:65536", "redis://h/x", "redis://a,b", "redis://h?x=1", "redis://h#x"],
    // Characters of a password that end the hosts, or begin them anew.
    ...["redis://me:1#rest@host", "redis://me:1/rest@host", "redis://me:1@rest@host", "redis://me:%zz@host", "redis://u:p@"],
    ...["redis+sentinel://a", "redis+sentinel://a/", "redis+sentinel://a/m/x", "redis+sentinel://a/m/1/2", "redis+sentinel:///m"],
    ...["redis+cluster://a/1", "redis+cluster://a,,b", "redis+other://a", "http://h", "redis://h h"],
  ])("%j is none", (text) => {
    expect(readRedisAddress(text)).toBeUndefined();
  });

  it("is shown without user and password", () => {
    const shown = (text: string): string => {
      const address = readRedisAddress(text);
      return address ? describeRedis(address) : "";
    };
    expect(shown("rediss://u:secret@h/2")).toBe("Redis at h:6379");
    expect(shown("redis+sentinel://u:secret@a,[::1]:5/main")).toBe("Redis main by the Sentinels at a:26379,[::1]:5");
    expect(shown("redis+cluster://u:secret@a:1,b:2")).toBe("Redis Cluster at a:1,b:2");
  });
});
