import { timestampDate, timestampMs } from "@bufbuild/protobuf/wkt";
import { isLoopbackHost } from "../../client/target.js";
import type { Condition, Server } from "../../gen/toolcrib/v1/server_pb.js";
import { BreakerState, ConditionStatus, ConditionType, ToolSource } from "../../gen/toolcrib/v1/server_pb.js";
import { breakerWords, since, troublesOf } from "../server-state.js";
import { grouped, printable } from "../table.js";
import type { Finding } from "./finding.js";
import { fail, ok, warn } from "./finding.js";

const ASK_MS = 3_000;
/** Endpoints asked at the same time. */
const LANES = 8;

export interface ServersContext {
  /** The registry runs on this machine, so its loopback is ours. */
  readonly registryIsHere: boolean;
  readonly nowMs: number;
  readonly ending: AbortSignal;
}

/** One finding or more a server, in the order given. */
export async function checkServers(servers: readonly Server[], context: ServersContext): Promise<Finding[]> {
  const findings: Finding[][] = [];
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let at = next++; at < servers.length; at = next++) {
      const server = servers[at];
      if (server) findings[at] = await checkServer(server, context);
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  return findings.flat();
}

async function checkServer(server: Server, context: ServersContext): Promise<Finding[]> {
  const check = `server ${printable(server.serverId)}`;
  const endpoints = [...new Set(server.instances.map(({ endpoint }) => endpoint).filter((url) => url !== ""))];
  const seen = await Promise.all(endpoints.map((url) => checkEndpoint(check, url, context)));
  const findings = [
    ...conditionFindings(check, server),
    ...breakerFindings(check, server, context.nowMs),
    ...stateFindings(check, server, context.nowMs),
    ...seen.flat(),
  ];
  if (server.rejectedCount > 0) {
    const names = server.rejectedTools.slice(0, 3).map(({ name }) => printable(name) || "(unnamed)");
    findings.push(
      warn(
        check,
        `${grouped(server.rejectedCount)} of its tools are not listed, such as ${names.join(", ")}`,
        "`toolcrib servers` tells what is wrong with each; the server's author has to change it",
      ),
    );
  }
  return findings.some(({ level }) => level !== "ok")
    ? findings
    : [ok(check, summary(server, context.nowMs)), ...findings];
}

function summary(server: Server, nowMs: number): string {
  const tools = `${grouped(server.toolCount)} ${server.toolCount === 1 ? "tool" : "tools"}`;
  return `${tools}, ${lastListing(server, nowMs)}`;
}

function lastListing({ listedAt, source }: Server, nowMs: number): string {
  if (listedAt) return `last listed ${ago(nowMs - timestampMs(listedAt))}`;
  return source === ToolSource.INTROSPECTED ? "never listed" : "declared by itself";
}

export function ago(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000));
  if (seconds < 90) return `${seconds} s ago`;
  if (seconds < 5_400) return `${Math.round(seconds / 60)} min ago`;
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)} h ago` : `${Math.round(seconds / 86_400)} days ago`;
}

/** By the reason of a condition that does not hold. */
const CURES: Readonly<Record<string, string>> = {
  EGRESS_DENIED:
    "allow the address with the registry's --egress-allow (TOOLCRIB_EGRESS_ALLOW), or register another endpoint",
  CONNECT_FAILED: "start the server, or register the endpoint at which the registry's machine reaches it",
  TIMEOUT: "look at the server's load, and at the way from the registry to it",
  HTTP_ERROR: "compare the endpoint's path with the server's, and look at the server's log",
  AUTH_REQUIRED: "register it with --credential NAME, a credential of the registry's --upstream-credentials file",
  UNKNOWN_CREDENTIAL:
    "look at the registry's --upstream-credentials file: the name, its namespaces, its hosts, its value",
  PRIVATE_LIST: "register it with --share-private, if everybody in the namespace may read its list",
  PROTOCOL_ERROR: "compare the endpoint with the server's MCP endpoint, and look at the server's log",
  TOO_LARGE: "the server's list has to become smaller, or be served in pages",
  DIGEST_MISMATCH: "restart the server, so that it registers what it now offers",
};

function conditionFindings(check: string, server: Server): Finding[] {
  const bad = server.conditions.filter(({ status }) => status === ConditionStatus.FALSE);
  // One cause often breaks several conditions.
  const causes = new Map(bad.map((condition) => [`${condition.reason} ${condition.message}`, condition]));
  const findings = [...causes.values()].map((condition) =>
    fail(check, describe(condition), CURES[condition.reason] ?? "look at the server's log and at the registry's"),
  );
  const never = server.source === ToolSource.INTROSPECTED && !server.listedAt && findings.length === 0;
  if (never)
    findings.push(
      warn(
        check,
        "it was never listed, so it has no tools",
        "start it, or register the endpoint at which it is reached",
      ),
    );
  return findings;
}

function describe({ type, reason, message, since }: Condition): string {
  const what =
    type === ConditionType.REACHABLE ? "the registry does not reach it" : "the registry could not read its tools";
  const from = since ? ` since ${timestampDate(since).toISOString().slice(0, 19).replace("T", " ")} UTC` : "";
  return `${what}${from}: ${printable(message) || reason}`;
}

function breakerFindings(check: string, server: Server, nowMs: number): Finding[] {
  const cure =
    server.breaker === BreakerState.ISOLATED
      ? `\`toolcrib resume ${printable(server.serverId)}\` when it may be used again`
      : "look at the server; the breaker closes by itself when it answers again";
  const level = server.breaker === BreakerState.ISOLATED ? warn : fail;
  return breakerWords(server, nowMs).map((words) => level(check, words, cure));
}

/** What is true of it and should not stay so; credentials are told of where the listing failed. */
function stateFindings(check: string, server: Server, nowMs: number): Finding[] {
  return troublesOf(server)
    .filter(({ holds, condition }) => holds !== "" && condition.type !== ConditionType.AUTH_REQUIRED)
    .map(({ holds, condition }) => {
      const why = condition.message === "" ? "" : `: ${printable(condition.message)}`;
      return warn(check, `${holds} ${since(condition.since, nowMs)}${why}`, "look at the server's log and its load");
    });
}

/** Only loopback endpoints are asked from here: others may answer the registry and not this machine, or the other way round. */
async function checkEndpoint(check: string, endpoint: string, context: ServersContext): Promise<Finding[]> {
  if (!URL.canParse(endpoint) || !isLoopbackHost(new URL(endpoint).hostname)) return [];
  if (!context.registryIsHere) {
    return [
      warn(
        check,
        `its endpoint ${printable(endpoint)} is a loopback address, which means the registry's own machine`,
        "if the server runs elsewhere, register an address that the registry reaches (wrap: --advertise)",
      ),
    ];
  }
  return askEndpoint(check, endpoint, context.ending);
}

async function askEndpoint(check: string, endpoint: string, ending: AbortSignal): Promise<Finding[]> {
  try {
    const signal = AbortSignal.any([AbortSignal.timeout(ASK_MS), ending]);
    const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" });
    // Without a session a ping changes nothing, and any answer shows that somebody is there.
    const answer = await fetch(endpoint, { method: "POST", headers, body, redirect: "manual", signal });
    await answer.body?.cancel();
    // Servers of HTTP+SSE take no POST where they have their stream.
    if (answer.status !== 404 || (await streams(endpoint, signal))) return [];
    return [
      warn(
        check,
        `at ${printable(endpoint)} a web server answers 404 from here`,
        "compare the path with the server's MCP endpoint",
      ),
    ];
  } catch (error) {
    const why =
      error instanceof Error && error.name === "TimeoutError"
        ? `no answer within ${ASK_MS / 1000} s`
        : "the connection failed";
    return [
      fail(
        check,
        `its endpoint ${printable(endpoint)} cannot be reached from here either: ${why}`,
        "start the server, or deregister it",
      ),
    ];
  }
}

async function streams(endpoint: string, signal: AbortSignal): Promise<boolean> {
  const headers = { accept: "text/event-stream" };
  const answer = await fetch(endpoint, { headers, redirect: "manual", signal });
  await answer.body?.cancel();
  return answer.ok && (answer.headers.get("content-type") ?? "").startsWith("text/event-stream");
}
