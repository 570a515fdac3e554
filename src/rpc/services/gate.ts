/** The RPCs of GateService: each asks the use-case, and puts the answer together as bytes. */
import { GateService } from "../../gen/toolcrib/v1/gate_service_pb.js";
import { findAnswer } from "../find-answer.js";
import { toFindQuery } from "../translate/find.js";
import { type UnaryMethod, method } from "./method.js";

const findTools = method(GateService.method.findTools, async (api, request, { deadlineMs }) => {
  const output = await api.gate.find(toFindQuery(request), deadlineMs);
  return { parts: [findAnswer(output)], stale: output.stale };
});

export const GATE: readonly UnaryMethod[] = [findTools];
