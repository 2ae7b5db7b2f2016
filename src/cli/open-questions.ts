import { reachText } from "../agent/approval-text.ts";
import { type Approval, SessionError } from "../index.ts";
import type { OpenQuestion, OpenRunView } from "../lifecycle/runs/list-runs.ts";
import { show } from "../session/errors.ts";
import { printable } from "./terminal.ts";

const LISTED_MAX = 10;
const ARGUMENTS_CHARACTERS_MAX = 60;

/** A question that waits for an answer, and the run that asks it. */
export interface WaitingQuestion extends OpenQuestion {
  readonly run: OpenRunView;
  /** Counted from 1 within its session. */
  readonly number: number;
}

/** What some open runs ask, in their order. */
export function questionsOf(runs: readonly OpenRunView[]): readonly WaitingQuestion[] {
  const counts = new Map<string, number>();
  return runs.flatMap((run) =>
    run.questions.map((question) => {
      const number = (counts.get(run.sessionId) ?? 0) + 1;
      counts.set(run.sessionId, number);
      return { ...question, run, number };
    }),
  );
}

/** A question as whoever is asked is shown it; a log that does not say what it is about leaves that open. */
export function approvalOf({ question, callId, name, arguments: given, effects, reach }: OpenQuestion): Approval {
  return {
    question,
    callId,
    name: name ?? "a tool",
    arguments: given,
    effects: (effects ?? "commands") as Approval["effects"],
    reach: reach as unknown as Approval["reach"],
  };
}

/** A question on one line: the tool, the beginning of its arguments, and what it could reach. */
export function describeQuestion(question: OpenQuestion): string {
  const { name, arguments: given } = approvalOf(question);
  return `${printable(name)} ${argumentsOf(given)} ${printable(reachText(approvalOf(question)), 200)}`;
}

/** The beginning of a call's arguments on one line. */
export function argumentsOf(given: OpenQuestion["arguments"]): string {
  return printable(JSON.stringify(given), ARGUMENTS_CHARACTERS_MAX);
}

/**
 * The question that was named: by its id, a beginning of it that no other has, or its number; the only one where none was.
 *
 * @throws {SessionError} `QUESTION_NOT_FOUND`, or `INVALID_OPTION` that lists them where several could be meant.
 */
export function pickQuestion(
  questions: readonly WaitingQuestion[],
  sessionId: string,
  reference: string | undefined,
): WaitingQuestion {
  const named =
    reference === undefined
      ? questions
      : questions.filter(({ question, number }) => question.startsWith(reference) || String(number) === reference);
  const [only, ...others] = named;
  if (only === undefined) {
    throw new SessionError(
      "QUESTION_NOT_FOUND",
      reference === undefined
        ? `No run of session ${sessionId} waits for an answer; skein approvals lists those that do.`
        : `No run of session ${sessionId} asks ${show(reference)}; skein approvals lists what is asked.`,
    );
  }
  if (others.length === 0) return only;
  const listed = named.slice(0, LISTED_MAX).map((each) => `${each.number} (${describeQuestion(each)})`);
  throw new SessionError(
    "INVALID_OPTION",
    `Session ${sessionId} waits for ${named.length} answers: name one of ${listed.join(", ")}.`,
  );
}
