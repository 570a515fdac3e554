import { expect, it } from "vitest";
import { asking, shelf } from "../../support/gate.js";

it("tools asked for by name are answered, or withheld with the cause, though no word of the intent is theirs", async () => {
  const s = shelf();
  s.put("erp/close_order", { briefDescription: "Close an order." });
  s.put("mail/send", { briefDescription: "Send a letter." });
  s.put("mail/away", { briefDescription: "Read a letter." }, "unavailable");
  const named = ["mail/send", "mail/away", "mail/none"];
  const { tools, withheld } = await s.gate.find(asking("close the order", { named, topK: 2 }), undefined);
  expect(tools.map((t) => t.toolId).sort()).toEqual(["erp/close_order", "mail/send"]);
  expect(tools.find((t) => t.toolId === "mail/send")?.reasons).toEqual([{ kind: "exact-name" }]);
  expect(withheld.map((t) => [t.toolId, t.cause])).toEqual([["mail/away", "unhealthy"]]);
});

it("their words do not count as the intent's", async () => {
  const s = shelf();
  s.put("erp/close_order", { briefDescription: "Close an order." });
  s.put("erp/order", { briefDescription: "An order." });
  const { tools } = await s.gate.find(asking("nothing of this", { named: ["erp/close_order"], topK: 5 }), undefined);
  expect(tools.map((t) => t.toolId)).toEqual(["erp/close_order"]);
});
