/** The RPCs of GateService: each asks the use-case, and puts the answer together as bytes. */
import { create } from "@bufbuild/protobuf";
import { formatRevision } from "../../domain/revision.js";
import { GateService, GetModuleMapResponseSchema, ReportOutcomeResponseSchema } from "../../gen/toolcrib/v1/gate_service_pb.js";
import { findAnswer } from "../find-answer.js";
import { toFindQuery, toMapQuery } from "../translate/find.js";
import { toReport } from "../translate/outcome.js";
import { type UnaryMethod, encode, method } from "./method.js";

const findTools = method(GateService.method.findTools, async (api, request, { deadlineMs }) => {
  const output = await api.gate.find(toFindQuery(request), deadlineMs);
  return { parts: [findAnswer(output)], stale: output.stale };
});

const getModuleMap = method(GateService.method.getModuleMap, async (api, request) => {
  const { text, tokens, modules, leftOut, tools, alwaysIncluded, stateFacts, position, stale } = await api.gate.map(toMapQuery(request));
  const body = create(GetModuleMapResponseSchema, {
    text,
    estimatedTokens: tokens,
    modules: modules.map(({ name, tools: toolCount }) => ({ name, toolCount })),
    leftOut,
    toolCount: tools,
    alwaysIncluded: [...alwaysIncluded],
    stateFacts: [...stateFacts],
    revision: formatRevision(position),
    stale,
  });
  return encode(GetModuleMapResponseSchema, body, stale);
});

const reportOutcome = method(GateService.method.reportOutcome, async (api, request) => {
  const { remembered } = await api.gate.report(toReport(request));
  return encode(ReportOutcomeResponseSchema, create(ReportOutcomeResponseSchema, { remembered }));
});

export const GATE: readonly UnaryMethod[] = [findTools, getModuleMap, reportOutcome];
