import type { SessionManager } from "../../../index.ts";
import { openRunsOf, type OpenRunView, type RunsQuery } from "../../../lifecycle/runs/list-runs.ts";
import { CHAT_AGENT } from "../../chat/chat-turns.ts";
import { type Command, type CommandContext, textOption } from "../../command.ts";
import { openManager } from "../../open-manager.ts";
import { countOption } from "../../options/option-values.ts";
import { findSession, SESSION_ARGUMENT } from "../../options/session-reference.ts";
import { tableLines } from "../../table.ts";
import { printable, shortTime } from "../../terminal.ts";

const STATES = ["parked", "interrupted", "requested", "running"] as const satisfies RunsQuery["state"][];

const COLUMNS = [
  { title: "SESSION" },
  { title: "RUN" },
  { title: "STATE" },
  { title: "AGENT" },
  { title: "SINCE" },
  { title: "BY" },
  { title: "WAITS FOR" },
];

/** Lists runs that have not ended. */
export const runs: Command = {
  name: "runs",
  summary: "List the open runs: who requested them, and what they wait for.",
  details:
    "States: requested (waits to start or to continue), running (a process has it), parked (waits for approval), interrupted (its process has died). skein recover continues requested, parked and interrupted runs.",
  arguments: [{ ...SESSION_ARGUMENT, optional: true }],
  options: {
    state: { value: "STATE", choices: STATES, what: "only runs in this state" },
    limit: { value: "N", default: "100", what: "at most this many" },
  },
  examples: [
    { line: "skein runs", what: "list all open runs" },
    { line: "skein runs --state interrupted --json", what: "runs whose process has died, for a program" },
  ],
  json: {
    runs: "the runs: sessionId, userId, runId, state, agent, group, requestedAt, by, notBefore, questions, expiresAt, and blocked: the reason why no worker could start it",
    more: "true if there are more",
  },
  store: "existing",
  async run(context) {
    const { runs: found, more } = await findRuns(context);
    if (context.json) context.printJson({ runs: found, more });
    else {
      if (found.length === 0) context.print("No run is open.");
      else for (const line of tableLines(COLUMNS, found.map(rowOf))) context.terminal.line(line);
      if (more) context.fail("There are more; give a larger --limit.");
    }
    return 0;
  },
};

async function findRuns(context: CommandContext): ReturnType<typeof readRuns> {
  const { positionals, values } = context;
  const state = textOption(values, "state") as RunsQuery["state"] | undefined;
  const limit = countOption(values, "limit") ?? Number.MAX_SAFE_INTEGER;
  await using store = await context.openStore();
  const [reference] = positionals;
  if (reference === undefined) {
    await using manager = await openManager(store);
    return await readRuns(manager, state === undefined ? STATES : [state], { limit });
  }
  const open = await openRunsOf(store, await findSession(store, reference));
  const wanted = open.filter((run) => state === undefined || run.state === state);
  return { runs: wanted.slice(0, limit), more: wanted.length > limit };
}

function rowOf(run: OpenRunView): readonly string[] {
  const since = run.questions[0]?.askedAt ?? run.requestedAt ?? run.startedAt;
  return [
    printable(run.sessionId, 512),
    printable(run.runId, 512),
    run.state,
    printable(run.agent ?? run.group ?? ""),
    since === null ? "" : shortTime(since),
    printable(run.by ?? ""),
    waitsFor(run),
  ];
}

function waitsFor({ state, agent, group, questions, notBefore, blocked }: OpenRunView): string {
  if (blocked !== null) return `${printable(blocked.code)}: ${printable(blocked.message, BLOCK_CHARACTERS_MAX)}`;
  if (questions.length > 0) return `an answer: ${questions.map(({ name }) => printable(name ?? "a tool")).join(", ")}`;
  if (state === "requested") {
    if (notBefore !== undefined) return shortTime(notBefore);
    return group !== null || agent === null ? "its turn" : `its turn in ${programWith(agent)}`;
  }
  if (state !== "interrupted") return "";
  if (group !== null) return "its group";
  return agent === null ? "skein recover --agent" : programWith(agent);
}

function programWith(agent: string): string {
  return agent === CHAT_AGENT ? "skein recover" : `a program that has ${printable(agent)}`;
}

/** How much is shown of the reason why a run could not be started. */
const BLOCK_CHARACTERS_MAX = 200;

const PAGE = 100;

/** The first open runs in the given states, up to the limit, and whether there are more. */
export async function readRuns(
  manager: SessionManager,
  states: readonly RunsQuery["state"][],
  { limit, ...query }: { readonly limit: number; readonly userId?: string },
): Promise<{ readonly runs: readonly OpenRunView[]; readonly more: boolean }> {
  const runs: OpenRunView[] = [];
  for (const state of states) {
    let cursor: string | null = null;
    do {
      const page = await manager.runs({ ...query, state, limit: PAGE, ...(cursor === null ? {} : { cursor }) });
      runs.push(...page.items);
      if (runs.length > limit) return { runs: runs.slice(0, limit), more: true };
      cursor = page.next;
    } while (cursor !== null);
  }
  return { runs, more: false };
}
