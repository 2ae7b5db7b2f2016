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

/** Lists the open questions. */
export const approvals: Command = {
  name: "approvals",
  summary: "List the calls that wait for approval.",
  details:
    "A question is listed as soon as it is asked. If it is not answered after a while, the run parks: it releases its session until the question is answered with skein approve or skein deny, in the studio or by a program. A question expires only if the program that asked it set a time (park.expireMs); it then counts as denied.",
  arguments: [],
  options: {
    user: { value: "ID", what: "only questions in sessions of this user" },
    limit: { value: "N", default: "100", what: "at most the questions of this many runs" },
  },
  examples: [{ line: "skein approvals", what: "list the open questions, to answer with skein approve" }],
  json: {
    questions:
      "the questions: sessionId, number, question, runId, userId, agent, group, by, name, arguments, effects, reach, askedAt, expiresAt",
    more: "true if there are more",
  },
  store: "existing",
  async run(context) {
    const { values } = context;
    const userId = textOption(values, "user");
    await using store = await context.openStore();
    await using manager = await openManager(store);
    const { runs, more } = await readRuns(manager, ["asking"], {
      ...(userId === undefined ? {} : { userId }),
      limit: countOption(values, "limit") ?? Number.MAX_SAFE_INTEGER,
    });
    const questions = questionsOf(runs);
    if (context.json) context.printJson({ questions: questions.map(jsonOf), more });
    else {
      if (questions.length === 0) context.print("No call waits for approval.");
      else for (const line of tableLines(COLUMNS, questions.map(rowOf))) context.terminal.line(line);
      if (more) context.fail("There are more; give a larger --limit.");
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
    run.expiresAt === undefined ? "never" : shortTime(run.expiresAt),
  ];
}

function jsonOf({ run, ...question }: WaitingQuestion): object {
  const { sessionId, runId, userId, agent, group, by, expiresAt = null } = run;
  return { sessionId, runId, userId, agent, group, by, ...question, expiresAt };
}
