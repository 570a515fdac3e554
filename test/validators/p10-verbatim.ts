/** P10: a definition comes back byte for byte as it was first seen under its digest. */
import { definitionDigest } from "../../src/domain/digest.js";
import { type History, only, type RegisterCall, type SchemaCall, type Violation } from "./history.js";
import { lostWithin } from "./registrations.js";

type Served = SchemaCall & { readonly outcome: { readonly kind: "ok" } };

export function verbatim(history: History): Violation[] {
  const served = new Map<string, Served[]>();
  for (const call of only(history, "schema")) {
    if (call.outcome.kind !== "ok" || call.view !== "full") continue;
    const key = `${call.namespace} ${call.outcome.value.digest}`;
    served.set(key, [...(served.get(key) ?? []), call as Served]);
  }
  const sent = sendings(history);
  const texts = [...served].flatMap(([key, calls]) => [
    ...untrue(calls),
    ...changing(history, calls),
    ...unlikeSent(history, calls, sent.get(key) ?? []),
  ]);
  return [...new Set(texts)].map((text) => ({ promise: "P10", text: `P10 verbatim: ${text}` }));
}

interface Sending {
  readonly call: RegisterCall;
  readonly bytes: string;
}

/** Definitions that came along with Registers, by namespace and digest. */
function sendings(history: History): Map<string, Sending[]> {
  const out = new Map<string, Sending[]>();
  for (const call of only(history, "register")) {
    for (const { digest, bytes } of call.tools) {
      if (digest === "" || bytes === "") continue;
      const key = `${call.namespace} ${digest}`;
      out.set(key, [...(out.get(key) ?? []), { call, bytes }]);
    }
  }
  return out;
}

function untrue(calls: readonly Served[]): string[] {
  return calls.flatMap((c) => {
    const real = definitionDigest(Buffer.from(c.outcome.value.bytes, "base64").toString());
    return real === c.outcome.value.digest ? [] : [`replica ${c.replica} answered ${c.toolId} with digest ${c.outcome.value.digest}, and its bytes have ${real}`];
  });
}

function changing(history: History, calls: readonly Served[]): string[] {
  const [first, ...others] = calls;
  return others.flatMap((c) => {
    if (!first || c.outcome.value.bytes === first.outcome.value.bytes || lostWithin(history, first.call, c.back ?? history.end)) return [];
    return [`${c.outcome.value.digest} had other bytes on replica ${c.replica} than before on replica ${first.replica}`];
  });
}

/** When everybody who sent it by then sent the same bytes, these are the first ones; else one of those that were sent. */
function unlikeSent(history: History, calls: readonly Served[], sent: readonly Sending[]): string[] {
  return calls.flatMap((c) => {
    const back = c.back ?? history.end;
    const by = sent.filter((s) => s.call.call.n < back.n);
    const variants = new Set(by.map((s) => s.bytes));
    // A definition that a server listed may have been the first one.
    const listed = only(history, "register").some((r) => r.namespace === c.namespace && r.offer === "introspect" && r.call.n < back.n);
    if (variants.size === 0 || listed || variants.has(c.outcome.value.bytes)) return [];
    return [`replica ${c.replica} answered ${c.toolId || c.outcome.value.digest} with bytes that nobody registered`];
  });
}
