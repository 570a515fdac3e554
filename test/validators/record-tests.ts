/** Records what every test of a file asks of its registries, and judges it when the test is over. */
import { afterEach, beforeEach, expect } from "vitest";
import { RemoteRegistry } from "../support/registry.js";
import type { Facts } from "./history.js";
import { Recorder } from "./recorder.js";
import { type Promised, verdict } from "./validators.js";

/** For the clients that tests make of the registries that they start. Answers the recorder of the test that runs. */
export function judgeEach(promises: readonly Promised[], facts: Partial<Facts> = {}): () => Recorder {
  let recorder = new Recorder(facts);
  let clients = 0;
  beforeEach(() => {
    const current = new Recorder(facts);
    recorder = current;
    clients = 0;
    RemoteRegistry.tapped = (address) => {
      clients++;
      return current.tap(address);
    };
  });
  afterEach(({ task }) => {
    RemoteRegistry.tapped = undefined;
    // A test that failed has said so already.
    if (task.result?.state === "fail") return;
    const history = recorder.history();
    if (clients > 0) expect(history.items.length, "what was recorded").toBeGreaterThan(0);
    expect(verdict(history, promises), "promises, as the clients saw them").toEqual([]);
  });
  return () => recorder;
}
