/**
 * Two small MCP servers for people who run, with something real behind their tools.
 *
 *   node running-server.mjs results|training
 */
import { createServer } from "node:http";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";
import { announce } from "./announce.mjs";

const MARATHON_KM = 42.195;
const RESULTS = [
  { race: "Berlin Marathon", year: 2025, runner: "Mia Sommer", seconds: 12_684 },
  { race: "Berlin Marathon", year: 2025, runner: "Jonas Feld", seconds: 10_931 },
  { race: "Hamburg Marathon", year: 2026, runner: "Mia Sommer", seconds: 12_315 },
  { race: "Hamburg Marathon", year: 2026, runner: "Jonas Feld", seconds: 11_127 },
];

const clock = (seconds) => new Date(seconds * 1_000).toISOString().slice(11, 19);
const pace = (seconds) => clock(Math.round(seconds)).slice(3);
const said = (text) => ({ content: [{ type: "text", text }] });
const readOnly = { readOnlyHint: true, openWorldHint: false };

const OFFERS = {
  results: {
    race_results: {
      description: "Finish times of all runners of one marathon race, the fastest first.",
      input: { race: z.string().describe("Name of the race"), year: z.number().int().describe("Year of the race") },
      run: ({ race, year }) => {
        const found = RESULTS.filter((r) => r.race === race && r.year === year).sort((a, b) => a.seconds - b.seconds);
        return found.map((r, place) => `${place + 1}. ${r.runner} ${clock(r.seconds)}`).join("\n") || "no such race";
      },
    },
    runner_results: {
      description: "All race results of one runner: race, year and finish time.",
      input: { runner: z.string().describe("Name of the runner") },
      run: ({ runner }) => RESULTS.filter((r) => r.runner === runner).map((r) => `${r.race} ${r.year}: ${clock(r.seconds)}`).join("\n") || "no results",
    },
    personal_best: {
      description: "The best marathon result of one runner.",
      input: { runner: z.string().describe("Name of the runner") },
      run: ({ runner }) => {
        const [best] = RESULTS.filter((r) => r.runner === runner).sort((a, b) => a.seconds - b.seconds);
        return best ? `${clock(best.seconds)} at ${best.race} ${best.year}` : "no results";
      },
    },
  },
  training: {
    pace_for_goal: {
      description: "The training pace per kilometre for a marathon goal time.",
      input: { goal_seconds: z.number().int().positive().describe("Goal time in seconds") },
      run: ({ goal_seconds }) => `${pace(goal_seconds / MARATHON_KM)} min per km`,
    },
    plan_week: {
      description: "A training plan for one week of preparation: what to run on which day.",
      input: { weeks_to_race: z.number().int().min(0).max(30).describe("Weeks until race day"), kilometres: z.number().positive().describe("Kilometres of the week") },
      run: ({ weeks_to_race, kilometres }) => {
        const taper = weeks_to_race < 3 ? 0.5 : 1;
        const shares = { Tuesday: 0.2, Thursday: 0.2, Saturday: 0.15, Sunday: 0.45 };
        return Object.entries(shares).map(([day, share]) => `${day}: ${(kilometres * taper * share).toFixed(1)} km`).join("\n");
      },
    },
    log_session: {
      description: "Writes a finished training session into the diary.",
      input: { kilometres: z.number().positive(), minutes: z.number().positive() },
      run: ({ kilometres, minutes }) => `noted: ${kilometres} km at ${pace((minutes * 60) / kilometres)} min per km`,
    },
  },
};

const [which] = process.argv.slice(2);
function build() {
  const server = new McpServer({ name: which, version: "1.0.0" });
  for (const [name, { description, input, run }] of Object.entries(OFFERS[which])) {
    server.registerTool(name, { description, inputSchema: z.object(input), annotations: name === "log_session" ? {} : readOnly }, async (args) => said(run(args)));
  }
  return server;
}
announce(createServer(toNodeHandler(createMcpHandler(build))));
