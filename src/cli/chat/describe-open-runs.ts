import { hasBegun } from "../../session/log/run-fold.ts";
import type { OpenRunView } from "../../lifecycle/runs/list-runs.ts";
import { approvalOf, questionsOf, type WaitingQuestion } from "../open-questions.ts";
import { printable, shortTime } from "../terminal.ts";
import { approvalQuestion } from "./approval-question.ts";

/** Describes the state of a session's open runs and how to continue them with the agents that are here; null if none is open. */
export function describeOpenRuns(runs: readonly OpenRunView[], here: ReadonlySet<string>): string | null {
  const run = runs.find(hasBegun) ?? runs[0];
  if (run === undefined) return null;
  switch (run.state) {
    case "parked":
      return describeQuestions(questionsOf([run]));
    case "requested":
      return `${describeRequest(run)}; /recover starts it${run.notBefore === undefined ? "" : " then"}.`;
    case "running":
      return "A run is active in this session, or its program was killed a moment ago; /recover waits for it and continues it.";
    case "interrupted":
      return run.group !== null || run.agent === null || here.has(run.agent)
        ? "The last run was interrupted. No message is lost; /recover continues the run."
        : `The last run, of agent ${printable(run.agent)}, was interrupted. No message is lost; a program that has this agent continues it, or skein recover --agents FILE. Only skein cancel ends it here.`;
  }
}

/** The open questions as text, and how to answer them. */
export function describeQuestions(questions: readonly WaitingQuestion[]): string {
  const cards = questions.map((waiting) => {
    const { text, question } = approvalQuestion(approvalOf(waiting));
    const { by } = waiting.run;
    const asked = `asked ${shortTime(waiting.askedAt)}${by === null ? "" : ` in a run of ${printable(by)}`}`;
    return [...(text === null ? [] : [text]), `${waiting.number} ${question} (${asked})`].join("\n");
  });
  return [...cards, "The run waits for your answer: /approve or /deny."].join("\n");
}

function describeRequest({ by, requestedAt, notBefore }: OpenRunView): string {
  if (requestedAt === null) return "A run waits to continue";
  const who = by === null ? "" : ` by ${printable(by)}`;
  const when = notBefore === undefined ? "its turn" : shortTime(notBefore);
  return `A run requested ${shortTime(requestedAt)}${who} waits for ${when}`;
}
