import { abortCases } from "./model/abort-cases.ts";
import { answerCases } from "./model/answer-cases.ts";
import { failureCases } from "./model/failure-cases.ts";
import { requestCases } from "./model/request-cases.ts";
import { streamCases } from "./model/stream-cases.ts";
import { toolCases } from "./model/tool-cases.ts";
import type { ModelCase } from "./model-case.ts";

/**
 * What every model promises, as cases for any test runner. They ask plain questions and assert only what holds of any
 * answer, so that they run against a provider itself as well as against a stand-in that repeats words and calls tools.
 */
export const modelCases: readonly ModelCase[] = [
  ...answerCases,
  ...requestCases,
  ...toolCases,
  ...streamCases,
  ...abortCases,
  ...failureCases,
];
