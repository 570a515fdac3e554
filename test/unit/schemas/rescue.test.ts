/** Found by the model runs: an emptied store got its standing servers back, but not the definitions they were registered with. */
import { expect, it } from "vitest";
import { Scene } from "../../validators/scene.js";
import { tool } from "../../validators/scripts.js";
import { verdict } from "../../validators/validators.js";

it("P7: after the store lost everything, a standing server's definitions are there again, at a replica that never had them too", async () => {
  const scene = new Scene({ facts: { oneHistory: false } });
  const { a, b, recorder, store } = scene;
  await scene.settle();
  // Only replica b ever had the definition in memory.
  await b.register("standing", [tool("t")], { ttlMs: 0 });
  await scene.settle();
  const loss = recorder.fault("store-lost");
  store.flush();
  await scene.advance(3_000);
  loss.end();
  await scene.advance(30_000);
  expect(await a.list()).toEqual(["standing/t"]);
  expect(await a.definition("standing/t")).toBe(JSON.stringify(tool("t")));
  expect(await b.definition("standing/t")).toBe(JSON.stringify(tool("t")));
  expect(verdict(await scene.end())).toEqual([]);
});
