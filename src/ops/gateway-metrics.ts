/** Metrics of a gateway: beside the registry's where it runs in its process, else in a registry of their own. */
import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from "prom-client";

/** What a gateway counts; each word comes from a list in METRICS.md. */
export interface GatewayCounts {
  readonly called: (outcome: string, ms: number) => void;
  readonly found: (by: string) => void;
  readonly created: (what: string) => void;
  readonly streams: (open: number) => void;
  readonly refused: (reason: string) => void;
}

/** Seconds: a call goes to somebody else's server, and may take an hour. */
const CALL_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

export function gatewayMetrics(registry: Registry): { readonly gateway: GatewayCounts } {
  const registers = [registry];
  const counter = <L extends string>(name: string, help: string, label: L) => new Counter<L>({ name: `toolcrib_gateway_${name}`, help, labelNames: [label], registers });
  const calls = counter("calls_total", "Calls that a gateway was asked to forward, by outcome.", "outcome");
  const duration = new Histogram({ name: "toolcrib_gateway_call_duration_seconds", help: "Time to answer a forwarded call, waiting for a place included.", buckets: CALL_SECONDS, registers });
  const finds = counter("finds_total", "Answers of find_tools, by who chose.", "by");
  const toolsets = counter("toolsets_total", "Sessions and toolsets that were begun.", "what");
  const streams = new Gauge({ name: "toolcrib_gateway_streams", help: "Open streams of sessions.", registers });
  const refused = counter("refused_total", "Requests of clients that were refused, by reason.", "reason");
  const gateway: GatewayCounts = {
    called: (outcome, ms) => {
      calls.inc({ outcome });
      duration.observe(ms / 1_000);
    },
    found: (by) => finds.inc({ by }),
    created: (what) => toolsets.inc({ what }),
    streams: (open) => streams.set(open),
    refused: (reason) => refused.inc({ reason }),
  };
  return { gateway };
}

/** For a gateway in a process of its own. */
export function createGatewayMetrics(version: string): { readonly registry: Registry; readonly gateway: GatewayCounts } {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, prefix: "toolcrib_" });
  new Gauge({ name: "toolcrib_build_info", help: "Always 1; the label tells what runs.", labelNames: ["version"], registers: [registry] }).set({ version }, 1);
  return { registry, ...gatewayMetrics(registry) };
}
