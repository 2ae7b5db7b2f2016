import type { SessionManager } from "../../../index.ts";
import { openRunsOf } from "../../../lifecycle/runs/list-runs.ts";
import { CHAT_AGENT } from "../../chat/chat-turns.ts";
import { type CommandArgument, type CommandContext, textOption, type Command } from "../../command.ts";
import { AT_TERMINAL, openManager } from "../../open-manager.ts";
import { describeQuestion, pickQuestion, questionsOf, type WaitingQuestion } from "../../open-questions.ts";
import { findSession, SESSION_ARGUMENT } from "../../options/session-reference.ts";
import { printable } from "../../terminal.ts";

/** How a question is named on the command line. */
const QUESTION_ARGUMENT: CommandArgument = {
  name: "question",
  what: "the question: its number in skein approvals, its id or a prefix of it (default: the session's only one)",
  optional: true,
};

/** The fields that an answer prints with `--json`. */
const ANSWER_JSON: Readonly<Record<string, string>> = {
  sessionId: "the session's id",
  runId: "the run that asked",
  question: "the question's id",
  name: "the tool of the call",
  approved: "true if the call may run",
  waiting: "the number of questions of the session that are still open",
};

/** Answers a question of a session; prints the answer and what happens next. */
async function answerQuestion(context: CommandContext, approved: boolean): Promise<number> {
  const [session = "", reference] = context.positionals;
  await using store = await context.openStore();
  const head = await findSession(store, session);
  const { id } = head.header;
  const questions = questionsOf(await openRunsOf(store, head));
  const asked = pickQuestion(questions, id, reference);
  await using manager = await openManager(store);
  await submitAnswer(manager, context, asked, approved);
  const waiting = questions.length - 1;
  const { question, name, run } = asked;
  if (context.json) context.printJson({ sessionId: id, runId: run.runId, question, name, approved, waiting });
  else {
    context.print(`${approved ? "Approved" : "Denied"}: ${describeQuestion(asked)}.`);
    context.print(nextStep(asked, waiting));
  }
  return 0;
}

async function submitAnswer(
  manager: SessionManager,
  { values }: CommandContext,
  { question, run: { sessionId } }: WaitingQuestion,
  approved: boolean,
): Promise<void> {
  const [note, reason] = [textOption(values, "note"), textOption(values, "reason")];
  const answer = note === undefined ? {} : { note };
  if (approved) await manager.approve(sessionId, question, answer, AT_TERMINAL);
  else await manager.deny(sessionId, question, { ...answer, ...(reason === undefined ? {} : { reason }) }, AT_TERMINAL);
}

function nextStep({ run: { state, sessionId, agent, group } }: WaitingQuestion, waiting: number): string {
  if (waiting > 0) return `The run still waits for ${waiting === 1 ? "another answer" : `${waiting} other answers`}.`;
  if (state === "running") return "The run continues.";
  if (group !== null) return "A program or server that has its group continues the run.";
  if (agent !== null && agent !== CHAT_AGENT) {
    return `A program, server or worker that has ${printable(agent)} continues the run; so does skein recover ${sessionId} --agents FILE here.`;
  }
  return `A server that uses this store continues the run; to continue it here, run skein recover ${sessionId}.`;
}

/** Approves a call. */
export const approve: Command = {
  name: "approve",
  summary: "Approve a call that waits for approval.",
  arguments: [SESSION_ARGUMENT, QUESTION_ARGUMENT],
  options: { note: { value: "TEXT", what: "a note, stored in the log" } },
  examples: [
    { line: "skein approve last", what: "approve the only waiting call of the latest session" },
    {
      line: 'skein approve 0199a3 2 --note "checked with Ann"',
      what: "approve the second call of a session, with a note",
    },
  ],
  json: ANSWER_JSON,
  store: "existing",
  run: (context) => answerQuestion(context, true),
};

/** Denies a call. */
export const deny: Command = {
  name: "deny",
  summary: "Deny a call that waits for approval; the run continues without it.",
  arguments: [SESSION_ARGUMENT, QUESTION_ARGUMENT],
  options: {
    reason: { value: "TEXT", what: "the reason, which the model gets" },
    note: { value: "TEXT", what: "a note, stored in the log" },
  },
  examples: [{ line: 'skein deny last --reason "not on a Friday"', what: "deny, and tell the model why" }],
  json: ANSWER_JSON,
  store: "existing",
  run: (context) => answerQuestion(context, false),
};
