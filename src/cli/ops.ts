import { request as requestPlain } from "node:http";
import { request as requestTls } from "node:https";
import type { Target } from "../client/target.js";
import { CommandError } from "./io.js";

/** The base URL of the ops listener: the one given, else the registry's host and two above its port, as 7852 beside 7850. */
export function opsBase(target: Target, given: string | undefined): string {
  if (given === undefined) {
    const { hostname, port } = new URL(`http://${target.address}`);
    return `${target.tls ? "https" : "http"}://${hostname}:${Number(port || "80") + 2}`;
  }
  const text = given.includes("://") ? given : `http://${given}`;
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) {
    throw new CommandError(`--ops "${given}" is not an address: give host:port or http://host:port`, 2);
  }
  return new URL(text).origin;
}

export interface OpsAnswer {
  readonly status: number;
  readonly body: string;
  /** What the listener's clock said, ms since 1970, whole seconds; undefined where it said nothing. */
  readonly dateMs: number | undefined;
}

/** Rejects when nobody answers in time. Over TLS with the same authority and client certificate as the registry. */
export function askOps(
  base: string,
  path: string,
  access: Target["access"],
  timeoutMs: number,
  ending: AbortSignal,
): Promise<OpsAnswer> {
  const url = new URL(path, base);
  const signal = AbortSignal.any([AbortSignal.timeout(timeoutMs), ending]);
  const tls = { ca: access?.ca, cert: access?.cert, key: access?.key };
  return new Promise((resolve, reject) => {
    const request = url.protocol === "https:" ? requestTls(url, { signal, ...tls }) : requestPlain(url, { signal });
    request.once("error", reject).once("response", (answer) => {
      const dateMs = Date.parse(answer.headers.date ?? "");
      const parts: Buffer[] = [];
      answer.on("data", (part: Buffer) => parts.push(part));
      answer.once("error", reject).once("end", () => {
        const body = Buffer.concat(parts).toString("utf8");
        resolve({ status: answer.statusCode ?? 0, body, dateMs: Number.isNaN(dateMs) ? undefined : dateMs });
      });
    });
    request.end();
  });
}

export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Prometheus text format, as far as the registry writes it. */
export class Metrics {
  readonly #samples = new Map<string, Sample[]>();

  constructor(text: string) {
    for (const line of text.split("\n")) {
      const match = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/.exec(line);
      if (!match) continue;
      const [, name = "", labels = "", value = ""] = match;
      const samples = this.#samples.get(name) ?? [];
      samples.push({ labels: readLabels(labels), value: Number(value) });
      this.#samples.set(name, samples);
    }
  }

  samples(name: string): readonly Sample[] {
    return this.#samples.get(name) ?? [];
  }

  /** Sum over all labels; undefined where there is no such metric. */
  total(name: string, matches: (labels: Sample["labels"]) => boolean = () => true): number | undefined {
    const samples = this.#samples.get(name);
    return samples?.filter(({ labels }) => matches(labels)).reduce((sum, { value }) => sum + value, 0);
  }

  max(name: string): number | undefined {
    const samples = this.#samples.get(name);
    return samples && Math.max(...samples.map(({ value }) => value));
  }
}

function readLabels(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const [, name = "", value = ""] of text.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) {
    labels[name] = value.replace(/\\(.)/g, (_all, char: string) => (char === "n" ? "\n" : char));
  }
  return labels;
}
