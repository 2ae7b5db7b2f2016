import type { OpenRunView } from "../../lifecycle/runs/list-runs.ts";
import { approvalOf, questionsOf, type WaitingQuestion } from "../open-questions.ts";
import { printable, shortTime } from "../terminal.ts";
import { approvalQuestion } from "./approval-question.ts";

/** How the open runs of a session stand, and what to do about them; null where none is open. */
export function describeOpenRuns(runs: readonly OpenRunView[]): string | null {
  const run = runs.find(({ state }) => state !== "requested") ?? runs[0];
  if (run === undefined) return null;
  switch (run.state) {
    case "parked":
      return describeQuestions(questionsOf([run]));
    case "requested":
      return `${describeRequest(run)}; /recover goes on with it${run.notBefore === undefined ? "" : " from then on"}.`;
    case "running":
      return "A run is under way in this session, or its program was killed a moment ago; /recover waits and goes on with it.";
    case "interrupted":
      return "The last run was interrupted; nothing that was said is lost, and /recover goes on with it.";
  }
}

/** What waits for a person's word, as they would be asked, and how to answer. */
export function describeQuestions(questions: readonly WaitingQuestion[]): string {
  const cards = questions.map((waiting) => {
    const { text, question } = approvalQuestion(approvalOf(waiting));
    const { by } = waiting.run;
    const asked = `asked ${shortTime(waiting.askedAt)}${by === null ? "" : ` in a run of ${printable(by)}`}`;
    return [...(text === null ? [] : [text]), `${waiting.number} ${question} (${asked})`].join("\n");
  });
  return [...cards, "The run waits for your word: /approve or /deny, and it goes on."].join("\n");
}

function describeRequest({ by, requestedAt, notBefore }: OpenRunView): string {
  if (requestedAt === null) return "A run waits to go on";
  const who = by === null ? "" : ` by ${printable(by)}`;
  const when = notBefore === undefined ? "its turn" : shortTime(notBefore);
  return `A run that was asked for ${shortTime(requestedAt)}${who} waits for ${when}`;
}
