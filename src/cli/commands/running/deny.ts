import { ANSWER_JSON, answerQuestion, QUESTION_ARGUMENT } from "./answer-question.ts";
import type { Command } from "../../command.ts";
import { SESSION_ARGUMENT } from "../../options/session-reference.ts";

/** Refuses a call that waits for a person's word. */
export const deny: Command = {
  name: "deny",
  summary: "Refuse a call that waits for a person's word; the run goes on without it.",
  arguments: [SESSION_ARGUMENT, QUESTION_ARGUMENT],
  options: {
    reason: { value: "TEXT", what: "why not, which the model is told" },
    note: { value: "TEXT", what: "a note for whoever reads the log" },
  },
  examples: [{ line: 'skein deny last --reason "not on a Friday"', what: "refuse, and tell the model why" }],
  json: ANSWER_JSON,
  store: "existing",
  run: (context) => answerQuestion(context, false),
};
