/** An introspected server that stops answering for a while, looked after by a real keeper. */
import { createClaims } from "../../src/probe/claims.js";
import { createKeeper } from "../../src/probe/keeper.js";
import { createPanic } from "../../src/probe/panic.js";
import { createSlots } from "../../src/probe/slots.js";
import { UpstreamError } from "../../src/catalogue/upstream-port.js";
import { silentLogger } from "../support/upstream.js";
import type { History } from "./history.js";
import { Scene } from "./scene.js";
import { tool } from "./scripts.js";

const ENDPOINT = "http://127.0.0.1:9/mcp";
const RULES = { intervalMs: 10_000, timeoutMs: 2_000, fall: 3, rise: 2 };

/** `fell`: it was seen unavailable meanwhile. */
export async function playOutageOfServer(): Promise<{ history: History; fell: boolean }> {
  const scene = new Scene({ facts: { recoverMs: 310_000 } });
  const { a, clock, random, recorder, site } = scene;
  await scene.settle();
  const [registry] = site.replicas;
  const store = registry?.partitionOf("default").deps.store;
  if (!registry || !store) throw new Error("a scene has replicas");
  let answers = true;
  const keeper = createKeeper({
    records: { server: (ns, id) => registry.partitionOf(ns).live().history.server(ns, id)?.record },
    relist: async () => {
      throw new UpstreamError("connect", "nobody lists in this story");
    },
    upstream: {
      subscribe: () => new Promise(() => undefined),
      async probe() {
        if (!answers) throw new UpstreamError("connect", "it does not answer");
      },
    },
    claims: createClaims({ notesOf: () => store.notes, replicaId: "a", clock, random, logger: silentLogger }),
    writer: registry.listings,
    panic: createPanic({ clock, logger: silentLogger, onChange: () => undefined }),
    slots: createSlots(8),
    rules: RULES,
    onLook: () => undefined,
    clock,
    random,
    logger: silentLogger,
  });
  registry.onEntry(({ change }) => keeper.servers([{ namespace: change.namespace, serverId: change.serverId }]));
  site.listings.set(ENDPOINT, [tool("t")]);
  await a.introspect("live", ENDPOINT);
  await scene.advance(30_000);
  answers = false;
  await scene.advance(120_000);
  const { servers } = await a.call("listServers", {});
  const fell = servers.some((s) => s.serverId === "live" && s.availability !== 1);
  const answering = recorder.answering("default", "live");
  answers = true;
  for (let i = 0; i < 5; i++) {
    await scene.advance(100_000);
    await a.call("listServers", {});
  }
  answering.end();
  const stopped = keeper.stop();
  const history = await scene.end();
  await stopped;
  return { history, fell };
}
