import { reachText } from "../../../agent/approval-text.ts";
import { type Command, textOption } from "../../command.ts";
import { openManager } from "../../open-manager.ts";
import { approvalOf, argumentsOf, questionsOf, type WaitingQuestion } from "../../open-questions.ts";
import { countOption } from "../../options/option-values.ts";
import { readRuns } from "./runs.ts";
import { tableLines } from "../../table.ts";
import { printable, shortTime } from "../../terminal.ts";

const COLUMNS = [
  { title: "SESSION" },
  { title: "NO", right: true },
  { title: "TOOL" },
  { title: "ARGUMENTS" },
  { title: "REACHES" },
  { title: "ASKED" },
  { title: "EXPIRES" },
];

/** Lists the questions that wait for an answer. */
export const approvals: Command = {
  name: "approvals",
  summary: "List the questions of runs: the calls that wait for a person's word.",
  details:
    "A question is listed as soon as it is asked. A run that has no answer after a while parks: it releases its session until skein approve or skein deny, the studio or a program answers. What nobody answers in time counts as denied.",
  arguments: [],
  options: {
    user: { value: "ID", what: "only of sessions of this user" },
    limit: { value: "N", default: "100", what: "of how many runs" },
  },
  examples: [{ line: "skein approvals", what: "what waits for an answer, to be given with skein approve" }],
  json: {
    questions:
      "the questions: sessionId, number, question, runId, userId, agent, group, by, name, arguments, effects, reach, askedAt, expiresAt",
    more: "whether there are more",
  },
  store: "existing",
  async run(context) {
    const { values } = context;
    const userId = textOption(values, "user");
    await using store = await context.openStore();
    await using manager = openManager(store);
    const { runs, more } = await readRuns(manager, ["asking"], {
      ...(userId === undefined ? {} : { userId }),
      limit: countOption(values, "limit") ?? Number.MAX_SAFE_INTEGER,
    });
    const questions = questionsOf(runs);
    if (context.json) context.printJson({ questions: questions.map(jsonOf), more });
    else {
      if (questions.length === 0) context.print("No run waits for an answer.");
      else for (const line of tableLines(COLUMNS, questions.map(rowOf))) context.terminal.line(line);
      if (more) context.fail("There are more; ask for them with a larger --limit.");
    }
    return 0;
  },
};

function rowOf(question: WaitingQuestion): readonly string[] {
  const { run, number, askedAt } = question;
  const approval = approvalOf(question);
  return [
    printable(run.sessionId, 512),
    String(number),
    printable(approval.name),
    argumentsOf(approval.arguments),
    printable(reachText(approval)),
    shortTime(askedAt),
    run.expiresAt === undefined ? "" : shortTime(run.expiresAt),
  ];
}

function jsonOf({ run, ...question }: WaitingQuestion): object {
  const { sessionId, runId, userId, agent, group, by, expiresAt = null } = run;
  return { sessionId, runId, userId, agent, group, by, ...question, expiresAt };
}
