import { afterAll, beforeAll, describe } from "vitest";
import { redisMissing } from "../support/redis.js";
import { type ClusterSet, startCluster } from "../support/redis-topologies.js";
import { redisHarness } from "./redis.harness.js";
import { storeSuite } from "./store.suite.js";

/** Filled in before the first test; the suite's harness asks for it only then. */
let cluster: ClusterSet;

describe.skipIf(redisMissing())("redis cluster", () => {
  beforeAll(async () => void (cluster = await startCluster()));
  afterAll(() => cluster.stop());

  storeSuite("redis store on a Cluster", (window) => redisHarness(cluster)(window));
});
