/** Records what every test of a file asks of its registries, and judges it when the test is over. */
import { afterEach, beforeEach, expect } from "vitest";
import { RemoteRegistry } from "../support/registry.js";
import type { Facts } from "./history.js";
import { Recorder } from "./recorder.js";
import { type Promised, verdict } from "./validators.js";

/** For the clients that tests make of the registries that they start. Answers the recorder of the test that runs. */
export function judgeEach(promises: readonly Promised[], facts: Partial<Facts> = {}): () => Recorder {
  let recorder = new Recorder(facts);
  beforeEach(() => {
    const current = new Recorder(facts);
    recorder = current;
    RemoteRegistry.tapped = (address) => current.tap(address);
  });
  afterEach(({ task }) => {
    RemoteRegistry.tapped = undefined;
    // A test that failed has said so already.
    if (task.result?.state === "fail") return;
    expect(verdict(recorder.history(), promises), "promises, as the clients saw them").toEqual([]);
  });
  return () => recorder;
}
