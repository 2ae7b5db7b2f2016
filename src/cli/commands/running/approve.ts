import type { SessionManager } from "../../../index.ts";
import { openRunsOf } from "../../../lifecycle/runs/list-runs.ts";
import { type CommandArgument, type CommandContext, textOption, type Command } from "../../command.ts";
import { AT_TERMINAL, openManager } from "../../open-manager.ts";
import { describeQuestion, pickQuestion, questionsOf, type WaitingQuestion } from "../../open-questions.ts";
import { findSession, SESSION_ARGUMENT } from "../../options/session-reference.ts";

/** How a question is named on the command line. */
const QUESTION_ARGUMENT: CommandArgument = {
  name: "question",
  what: "the question: its number in skein approvals, its id or a beginning of it; without it the only one of the session",
  optional: true,
};

/** What an answer prints with `--json`. */
const ANSWER_JSON: Readonly<Record<string, string>> = {
  sessionId: "the session's id",
  runId: "the run that asked",
  question: "the question's id",
  name: "the tool that was asked about",
  approved: "whether it may run",
  waiting: "how many questions of the session are still open",
};

/** Answers a question of a session, and says what was answered and how it goes on. */
async function answerQuestion(context: CommandContext, approved: boolean): Promise<number> {
  const [session = "", reference] = context.positionals;
  await using store = await context.openStore();
  const head = await findSession(store, session);
  const { id } = head.header;
  const questions = questionsOf(await openRunsOf(store, head));
  const asked = pickQuestion(questions, id, reference);
  await using manager = openManager(store);
  await giveWord(manager, context, asked, approved);
  const waiting = questions.length - 1;
  const { question, name, run } = asked;
  if (context.json) context.printJson({ sessionId: id, runId: run.runId, question, name, approved, waiting });
  else {
    context.print(`${approved ? "Approved" : "Denied"}: ${describeQuestion(asked)}.`);
    context.print(nextStep(asked, waiting));
  }
  return 0;
}

async function giveWord(
  manager: SessionManager,
  { values }: CommandContext,
  { question, run: { sessionId } }: WaitingQuestion,
  approved: boolean,
): Promise<void> {
  const [note, reason] = [textOption(values, "note"), textOption(values, "reason")];
  const word = note === undefined ? {} : { note };
  if (approved) await manager.approve(sessionId, question, word, AT_TERMINAL);
  else await manager.deny(sessionId, question, { ...word, ...(reason === undefined ? {} : { reason }) }, AT_TERMINAL);
}

function nextStep({ run: { state, sessionId } }: WaitingQuestion, waiting: number): string {
  if (waiting > 0) return `The run still waits for ${waiting === 1 ? "another answer" : `${waiting} other answers`}.`;
  if (state === "running") return "The run goes on.";
  return `A server of the store goes on with the run; skein recover ${sessionId} does so here.`;
}

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
