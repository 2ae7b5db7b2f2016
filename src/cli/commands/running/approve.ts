import { ANSWER_JSON, answerQuestion, QUESTION_ARGUMENT } from "./answer-question.ts";
import type { Command } from "../../command.ts";
import { SESSION_ARGUMENT } from "../../options/session-reference.ts";

/** Lets a call run that waits for a person's word. */
export const approve: Command = {
  name: "approve",
  summary: "Let a call run that waits for a person's word.",
  arguments: [SESSION_ARGUMENT, QUESTION_ARGUMENT],
  options: { note: { value: "TEXT", what: "a note for whoever reads the log" } },
  examples: [
    { line: "skein approve last", what: "agree to the only thing that the latest session asks" },
    { line: 'skein approve 0199a3 2 --note "checked with Ann"', what: "agree to its second question, with a note" },
  ],
  json: ANSWER_JSON,
  store: "existing",
  run: (context) => answerQuestion(context, true),
};
