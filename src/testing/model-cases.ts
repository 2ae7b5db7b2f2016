import { abortCases } from "./model/abort-cases.ts";
import { answerCases } from "./model/answer-cases.ts";
import { failureCases } from "./model/failure-cases.ts";
import { requestCases } from "./model/request-cases.ts";
import { streamCases } from "./model/stream-cases.ts";
import { toolCases } from "./model/tool-cases.ts";
import type { ModelCase } from "./model-case.ts";

/**
 * The conformance cases of `Model`, for any test runner. They ask simple questions and assert only properties of every
 * correct answer, so that they run against a real provider and against a fake that repeats words and calls tools.
 */
export const modelCases: readonly ModelCase[] = [
  ...answerCases,
  ...requestCases,
  ...toolCases,
  ...streamCases,
  ...abortCases,
  ...failureCases,
];
