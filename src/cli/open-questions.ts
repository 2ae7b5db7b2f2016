import { reachText } from "../agent/approval-text.ts";
import { type Approval, SessionError } from "../index.ts";
import type { OpenQuestion, OpenRunView } from "../lifecycle/runs/list-runs.ts";
import { show } from "../session/errors.ts";
import { printable } from "./terminal.ts";

const LISTED_MAX = 10;
const ARGUMENTS_CHARACTERS_MAX = 60;

/** An open question, with its run. */
export interface WaitingQuestion extends OpenQuestion {
  readonly run: OpenRunView;
  /** Its number within the session, from 1. */
  readonly number: number;
}

/** The questions of open runs, in order. */
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

/**
 * A question as an approval. If the log does not record the tool, it is named "a tool" and counts as running commands.
 */
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

/** A question on one line: the tool, the beginning of its arguments, and what it can reach. */
export function describeQuestion(question: OpenQuestion): string {
  const { name, arguments: given, reach } = approvalOf(question);
  const separator = reach === null ? "; " : " ";
  return `${printable(name)} ${argumentsOf(given)}${separator}${printable(reachText(approvalOf(question)), 200)}`;
}

/** The beginning of a call's arguments on one line. */
export function argumentsOf(given: OpenQuestion["arguments"]): string {
  return printable(JSON.stringify(given), ARGUMENTS_CHARACTERS_MAX);
}

/**
 * Finds the question that was named: by its id, a unique prefix of the id, or its number; without a name, the only
 * question.
 *
 * @throws {SessionError} `QUESTION_NOT_FOUND`, or `INVALID_OPTION` with a list if several match.
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
        ? `No call of session ${sessionId} waits for approval; skein approvals lists the calls that do.`
        : `Session ${sessionId} has no open question ${show(reference)}; skein approvals lists the questions.`,
    );
  }
  if (others.length === 0) return only;
  const listed = named.slice(0, LISTED_MAX).map((each) => `${each.number} (${describeQuestion(each)})`);
  throw new SessionError(
    "INVALID_OPTION",
    `Session ${sessionId} has ${named.length} open questions: name one of ${listed.join(", ")}.`,
  );
}
