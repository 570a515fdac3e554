/** A catalogue of an office suite in Chinese, too large for any prompt: the map is resident, the rest is 查 → 选 → 调. */
import { ScriptedAgent } from "./agent.js";
import { LARK, type Listing } from "./listings.js";
import { type Aim, type Outcome, percent, type Say, sayTable } from "./report.js";
import { toolTokens } from "./tokens.js";
import type { World } from "./world.js";

const NAMESPACE = "erp";

interface Task {
  /** As the user said it. */
  readonly intent: string;
  /** How the agent says it when the first search did not bring the tool. */
  readonly again: string;
  /** What somebody chooses who reads Chinese. */
  readonly tool: string;
  readonly args: Record<string, unknown>;
}

const TASKS: readonly Task[] = [
  { intent: "根据手机号查出员工的用户 ID", again: "通过手机号获取用户 ID", tool: "contact.v3.user.batchGetId", args: { data: { mobiles: ["13800000000"] }, params: { user_id_type: "user_id" } } },
  {
    intent: "帮我在日历上安排明天下午三点的项目例会",
    again: "创建日程",
    tool: "calendar.v4.calendarEvent.create",
    args: { data: { summary: "项目例会", start_time: { timestamp: "1798700400" }, end_time: { timestamp: "1798704000" } }, path: { calendar_id: "primary" } },
  },
  {
    intent: "给张三发一条消息，告诉他会议改到四点",
    again: "发送消息给用户",
    tool: "im.v1.message.create",
    args: { data: { receive_id: "u-1", msg_type: "text", content: '{"text":"会议改到四点"}' }, params: { receive_id_type: "user_id" } },
  },
];

export async function erp(world: World, listing: Listing, say: Say): Promise<Outcome> {
  const all = toolTokens(listing.tools);
  say(`\nThe ERP catalogue: ${listing.tools.length} tools in Chinese, ${all.toLocaleString("en")} tokens as definitions; stable mode, 查 → 选 → 调\n`);
  await world.offer(NAMESPACE, [listing]);
  const gateway = await world.gateway(NAMESPACE);
  const agent = await ScriptedAgent.connect(gateway.url, "2026-07-28");
  const rows: (string | number)[][] = [];
  const steps: { step: string; ok: boolean }[] = [];
  const before = JSON.stringify(await agent.list());
  const { tokens: list } = await agent.list();
  /** Of find_tools' and describe_tools' calls and answers so far: they stay in the conversation. */
  let kept = 0;
  let sent = 0;
  let requests = 0;

  /** One request of the model, which reads the list and what was kept, and asks for this call. */
  async function step(mark: string, name: string, args: Record<string, unknown>, keeps: boolean): Promise<string> {
    requests++;
    sent += list + kept;
    const answer = await agent.call(name, args);
    if (keeps) kept += answer.tokens;
    rows.push([`${mark} ${name}`, answer.tokens, list + kept]);
    steps.push({ step: `${mark} ${name}`, ok: !answer.isError });
    if (answer.isError) say(`  ${name} was refused: ${answer.text}`);
    return answer.text;
  }

  const ranks: number[][] = [];
  const answers: string[] = [];
  try {
    const map = await step("图", "find_tools", {}, true);
    const toolset = /^toolset: (\S+)$/m.exec(map)?.[1] ?? "";
    say(map.split("\n").slice(2, 8).map((line) => `  ${line}`).join("\n"));
    say("  …\n");
    for (const { intent, again, tool, args } of TASKS) {
      const toolId = `${LARK}/${tool}`;
      const tried: number[] = [];
      ranks.push(tried);
      for (const said of [intent, again]) {
        const found = await step("查", "find_tools", { intent: said, toolset, limit: 5 }, true);
        const offered = [...found.matchAll(/^- (\S+?)(?::|$| )/gm)].map(([, id]) => id);
        tried.push(offered.indexOf(toolId) + 1);
        if (offered.includes(toolId)) break;
      }
      await step("选", "describe_tools", { toolset, tools: [toolId] }, true);
      answers.push(await step("调", "call_tool", { toolset, tool: toolId, arguments: args }, false));
      say(`  ${intent} → ${tool} (${ordinals(tried)}) → ${answers.at(-1)?.slice(0, 90)}…`);
    }
    say("");
    sayTable(["step", "tokens of this step", "tool tokens resident"], [["tools/list", list, list], ...rows], say);
    const stays = JSON.stringify(await agent.list()) === before;
    const withAll = (TASKS.length + 1) * all;
    // The last answer is read by one more request.
    const inAll = sent + list + kept;
    say(`\n  ${requests + 1} requests of the model with ${inAll.toLocaleString("en")} tool tokens in all; with every definition resident it were ${TASKS.length + 1}`);
    say(`  requests with ${withAll.toLocaleString("en")}: ${percent(1 - inAll / withAll)} fewer. tools/list was ${stays ? "the same bytes before and after" : "NOT the same before and after"}.`);
    const facts = { tools: listing.tools.length, all, list, kept, requests: requests + 1, sent: inAll, withAll, ranks, steps, answers, listStays: stays };
    return { story: "erp", facts, aims: aimsOf(steps, ranks, stays) };
  } finally {
    await agent.close();
    await gateway.stop();
  }
}

function aimsOf(steps: readonly { readonly step: string; readonly ok: boolean }[], ranks: readonly (readonly number[])[], stays: boolean): Aim[] {
  const failed = steps.filter(({ ok }) => !ok).map(({ step }) => step);
  return [
    { what: "every step goes through", found: failed.length === 0 ? `${steps.length} steps` : `refused: ${failed.join(", ")}`, met: failed.length === 0 },
    { what: "the tool is found, with one more search at most", found: ranks.map(ordinals).join("; "), met: ranks.every((tried) => tried.some((rank) => rank > 0)) },
    { what: "the list never changes", found: stays ? "the same bytes" : "it changed", met: stays },
  ];
}

/** Where the tool stood in one search after the other. */
function ordinals(tried: readonly number[]): string {
  return tried.map((rank) => (rank === 0 ? "not found" : `no. ${rank}`)).join(", then ");
}
