/** P11: lists and watches ask no MCP server. Only where a test says that nothing else had a reason to, one can tell. */
import { type History, only, type Violation } from "./history.js";

export function stayHome(history: History): Violation[] {
  const asked = only(history, "upstream");
  const texts = only(history, "quiet").flatMap(({ from, to }) => {
    const within = (n: number): boolean => n > from.n && n < to.n;
    const reads = [...only(history, "stubs").map((c) => c.call.n), ...only(history, "watch").map((w) => w.at.n)].filter(within).length;
    const out = asked.filter((u) => within(u.at.n));
    if (out.length === 0 || reads === 0) return [];
    return [`while ${reads} lists and watches were all that was asked, the registry asked ${out[0]?.endpoint} for ${out[0]?.method} (${out.length} requests)`];
  });
  return texts.map((text) => ({ promise: "P11", text: `P11 stay home: ${text}` }));
}
