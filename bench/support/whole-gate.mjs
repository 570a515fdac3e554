/** The gate as a replica runs it, in this process: FindTools with rules, memory, past outcomes and siblings, over tools that a bench makes. */
import { everything } from "../../dist/domain/filter.js";
import { EMPTY_STUB } from "../../dist/domain/stub.js";
import { Gate } from "../../dist/gate/gate.js";
import { Outcomes } from "../../dist/gate/outcomes/outcomes.js";
import { readRules } from "../../dist/gate/rules/parse.js";
import { rulesOf } from "../../dist/gate/rules/rules.js";
import { stubCodec } from "../../dist/store/codec/stub.js";
import { Draw, intents } from "./gate-corpus.mjs";

const NAMESPACE = "default";
const POSITION = { partition: 0, revision: 1, chain: "bench" };

/** A dozen, of every kind: half of them match some intents, one matches all. */
export const RULES = `
categories:
  orders: ["server-1/*", "server-2/*"]
  billing: ["*/*invoice*"]
rules:
  - name: exports go to files
    when: { intent: [export, download] }
    prefer: ["*/*file*"]
  - name: finance has no network
    when: { state: [session=finance] }
    deny: ["server-3/*"]
  - name: deletions ask for a scope
    require_scope: { admin: ["*/delete_*"] }
  - name: orders first
    when: { intent: [order, purchase] }
    prefer: [category:orders]
  - name: invoices first
    when: { intent: [invoice, payment] }
    prefer: [category:billing]
  - name: no archive
    when: { intent: [archive] }
    deny: ["server-4/*"]
`;

const CLOCK = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  pause: () => new Promise((resolve) => setImmediate(resolve)),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      signal?.addEventListener("abort", done, { once: true });
    }),
};

export function definitionOf({ name, description, parameters }) {
  const properties = Object.fromEntries(parameters.map((p) => [p.name, { type: "string", description: p.description }]));
  return Buffer.from(JSON.stringify({ name, description, inputSchema: { type: "object", properties } }));
}

/** Answers when everything is indexed. `reports` past calls are told first. */
export async function wholeGate(scope, documents, reports) {
  const tools = new Map();
  const definitions = new Map();
  const siblings = new Map();
  const put = (document, more = "") => {
    const { toolId, serverId, name, description, tags, service } = document;
    const digest = `sha256:${toolId}`;
    const bytes = definitionOf(document);
    definitions.set(digest, bytes);
    const fields = { ...EMPTY_STUB, serverId, name, briefDescription: `${description}${more}`, tags, digest, sizeBytes: bytes.byteLength };
    const tool = { ...stubCodec.encode(fields, true), digest };
    const list = siblings.get(serverId) ?? [];
    siblings.set(serverId, list);
    if (!tools.has(toolId)) list.push(tool);
    tools.set(toolId, { tool, serverId, service, availability: "available", siblings: list });
  };
  for (const document of documents) put(document);
  const read = readRules(Buffer.from(RULES));
  if (!read.ok) throw new Error(JSON.stringify(read.problems));
  const rules = rulesOf(read.file);
  const outcomes = new Outcomes({
    store: { get: async () => undefined, put: async () => 1 },
    clock: CLOCK,
    random: { next: () => 0.5, id: () => "0".repeat(32) },
    retentionMs: 180 * 86_400_000,
    perSecond: 1_000_000,
    observer: { reported: () => undefined, synced: () => undefined },
    onError: (error) => {
      throw error;
    },
  });
  const gate = new Gate({
    catalogue: {
      at: async () => ({
        position: POSITION,
        stale: false,
        tool: (id) => tools.get(id),
        server: (serverId) => siblings.get(serverId),
        servers: () => [...siblings].map(([serverId, names]) => ({ serverId, names })),
      }),
      current: (_namespace, id) => tools.get(id),
      all: () => tools.values(),
      definitions: async (_namespace, digests) => digests.map((digest) => definitions.get(digest)),
    },
    load: async () => [],
    decode: (stub) => stubCodec.decode(stub),
    clock: CLOCK,
    observer: { found: () => undefined, withheld: () => undefined },
    outcomes,
    rules: () => rules,
    onError: (error) => {
      throw error;
    },
  });
  scope.defer(() => gate.stop());
  gate.reset([NAMESPACE], () => true);
  while (gate.tools < documents.length || gate.unread > 0) await CLOCK.sleep(20);
  const draw = new Draw(11);
  for (const [i, intent] of intents(reports, 5).entries()) {
    const { toolId } = documents[draw.below(documents.length)];
    const facts = { errorKind: "unsaid", latencyMs: 20, preceding: [], labelVersion: "", history: [] };
    await gate.report({ ...facts, namespace: NAMESPACE, toolId, intent, success: i % 9 > 0, caller: `caller ${i % 10}` });
  }
  return {
    find: (intent) => gate.find(question(intent), undefined),
    /** Another description, as a change of the catalogue brings it. */
    change(document, n) {
      put(document, ` Changed ${n}.`);
      gate.changed(NAMESPACE, document.serverId, document.service, [document.name], () => []);
    },
  };
}

function question(intent) {
  const nothing = { history: [], recent: [], scopes: [] };
  return { ...nothing, intent, state: ["session=support"], filter: everything(NAMESPACE), category: "", topK: 5, tokenBudget: 0, schemas: "none", minRevision: "" };
}
