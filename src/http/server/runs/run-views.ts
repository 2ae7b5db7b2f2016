import { parkedHost } from "../../../agent/persist/claim-run.ts";
import { inheritedCount, isOwn, type SessionHead } from "../../../session/log/fold.ts";
import { show } from "../../../session/errors.ts";
import { type Entry, type EntryOf, entryCharacters } from "../../../session/log/entry.ts";
import { type RunBlock, readBlock } from "../../../lifecycle/runs/list-runs.ts";
import type { Message } from "../../../session/message.ts";
import { type OpenRun, requestIdOf } from "../../../session/log/open-runs.ts";
import { newRun, openStatusOf, type RunState, RunsFold, shownRun, stepRun } from "../../../session/log/run-fold.ts";
import { runnerOfHost } from "../../../workers/notify-session.ts";
import type { ListRuns, QuestionView, RunView } from "../../run-wire.ts";
import type { Page } from "../../wire.ts";
import { HttpError } from "../http-error.ts";
import { recordedProblem } from "../problem.ts";
import type { Caller, ServerServices } from "../server-services.ts";
import { questionViews } from "./run-feed.ts";

/** How many entries back the runs of a session are listed. */
const LISTED_ENTRIES_MAX = 2000;
const LISTED_DEFAULT = 100;
const LISTED_CHARACTERS_MAX = 8 * 1024 * 1024;
/** How many entries back a run without a request is searched for. */
const UNASKED_ENTRIES_MAX = 10_000;
/** How long the end of a run is sent to clients that join: it may have been recorded after they read the messages. */
const ENDED_MS = 60_000;
const ENDED_ENTRIES_MAX = 50;

/**
 * The position of the first entry of a session's own run; `before` is a position after the run's last entry.
 *
 * @throws {HttpError} `RUN_NOT_FOUND`.
 */
export async function findRun(
  { store }: ServerServices,
  { header, openRuns }: SessionHead,
  runId: string,
  before: number = Number.MAX_SAFE_INTEGER,
): Promise<number> {
  const known = openRuns.find((open) => open.runId === runId)?.first;
  if (known !== undefined) return known;
  const request = await store.getEntry(header.id, requestIdOf(runId));
  let first: number | null = null;
  if (request?.type === "run_request") first = isOwn(header, request, request.seq) ? request.seq : null;
  else {
    for await (const entry of store.read(header.id, { reverse: true, before, limit: UNASKED_ENTRIES_MAX })) {
      if (entry.type !== "run" || !isOwn(header, entry, entry.seq)) continue;
      // Runs are sequential: the first entry of a run is preceded by the end of another.
      if (entry.runId === runId) first = entry.seq;
      else if (first !== null) break;
    }
  }
  if (first !== null) return first;
  throw new HttpError("RUN_NOT_FOUND", `Session ${header.id} has no run ${show(runId)}.`);
}

/** The started run of a session, otherwise the first one that waits to start. */
export function openRunOf({ openRuns }: SessionHead): OpenRun | undefined {
  return shownRun(openRuns);
}

/** The run to send to a client that joins a session: the open one, or one that has just ended. */
export async function runToJoin({ store }: ServerServices, head: SessionHead): Promise<string | null> {
  const open = openRunOf(head);
  if (open !== undefined) return open.runId;
  for await (const entry of store.read(head.header.id, { reverse: true, limit: ENDED_ENTRIES_MAX })) {
    if (entry.type !== "run" || !isOwn(head.header, entry, entry.seq)) continue;
    return Date.now() - Date.parse(entry.timestamp) < ENDED_MS ? entry.runId : null;
  }
  return null;
}

/** The state of a run. Reads the entries of the run. @throws {HttpError} `RUN_NOT_FOUND`. */
export async function readRun(
  services: ServerServices,
  head: SessionHead,
  runId: string,
  before?: number,
): Promise<RunView> {
  let run = newRun(runId);
  const after = (await findRun(services, head, runId, before)) - 1;
  for await (const entry of services.store.read(head.header.id, { after })) {
    run = stepRun(run, entry, head.header).state;
    if (run.end !== null) break;
  }
  return viewOf(services, head, run);
}

/** The runs of a session, latest first: the open ones, and the latest others. Reads the entries of these runs. */
export async function listSessionRuns(
  services: ServerServices,
  head: SessionHead,
  limit: number = LISTED_DEFAULT,
): Promise<readonly RunView[]> {
  const { header, openRuns } = head;
  const passed: Entry[] = [];
  /** The position of each run's last entry, latest first. */
  const ends = new Map<string, number>();
  const range = { after: inheritedCount(header) - 1, reverse: true, limit: LISTED_ENTRIES_MAX };
  let [more, characters] = [false, 0];
  for await (const entry of services.store.read(header.id, range)) {
    if (isOfRun(entry) && isOwn(header, entry, entry.seq) && !ends.has(entry.runId)) {
      more = ends.size === limit;
      if (more) break;
      ends.set(entry.runId, entry.seq + 1);
    }
    const kept = withoutText(entry);
    passed.push(kept);
    characters += entryCharacters(kept);
    more = characters > LISTED_CHARACTERS_MAX;
    if (more) break;
  }
  more ||= passed.length === LISTED_ENTRIES_MAX;
  const fold = new RunsFold(header);
  for (const entry of passed.reverse()) fold.take(entry);
  const runIds = new Set([...ends.keys(), ...openRuns.map(({ runId }) => runId).reverse()]);
  const views = await Promise.all(
    [...runIds].map((runId) => {
      const run = fold.states.get(runId);
      // A run may have started before the entries that were read, unless its request is among them.
      return run !== undefined && (run.request || !more)
        ? viewOf(services, head, run)
        : readRun(services, head, runId, ends.get(runId));
    }),
  );
  const timeOf = ({ requestedAt, startedAt, endedAt }: RunView): string => requestedAt ?? startedAt ?? endedAt ?? "";
  return views.sort((one, other) => timeOf(other).localeCompare(timeOf(one)));
}

/** An entry without its text, which a run's state does not need. */
function withoutText(entry: Entry): Entry {
  if (entry.type === "message") return { ...entry, message: { ...entry.message, content: "" } as Message };
  if (entry.type === "custom_message") return { ...entry, content: "" };
  return entry;
}

function isOfRun(entry: Entry): entry is EntryOf<"run" | "run_request"> {
  return entry.type === "run" || entry.type === "run_request";
}

/** A page of the open runs that a caller may see. Reads their index, not their logs. */
export async function listOpenRuns(
  services: ServerServices,
  query: ListRuns,
  as: { readonly actor: Caller },
): Promise<Page<RunView>> {
  const { items, next } = await services.manager.runs(query, as);
  const views = items.map(async ({ state, notBefore = null, expiresAt, questions, blocked, ...run }) => ({
    ...run,
    status: state,
    notBefore,
    endedAt: null,
    ...(await blockOf(services, { ...run, status: state }, blocked)),
    questions: questions.map((question) => ({
      ...(question as QuestionView),
      ...(expiresAt === undefined ? {} : { expiresAt }),
    })),
    output: null,
  }));
  return { items: await Promise.all(views), next };
}

async function viewOf(services: ServerServices, head: SessionHead, state: RunState): Promise<RunView> {
  const { runId, request, end, error, output = null, startedAt, endedAt } = state;
  const { id: sessionId, userId } = head.header;
  const status = end ?? (await openStatus(services.store, sessionId, state));
  const questions = questionViews(state);
  const run = {
    runId,
    sessionId,
    userId,
    agent: request?.agent ?? state.agent,
    group: request?.group ?? null,
    model: request?.model ?? null,
    status,
    by: request?.by ?? null,
    requestedAt: request?.timestamp ?? null,
    notBefore: request?.notBefore ?? null,
    startedAt,
    endedAt,
    questions,
    output,
  };
  const code = head.openRuns.find((open) => open.runId === runId)?.blocked;
  const blocked = end !== null || code === undefined ? null : await readBlock(services.store, sessionId, runId, code);
  const { withoutWorker, problem } = await blockOf(services, run, blocked);
  return { ...run, withoutWorker, problem: end === "failed" && error !== null ? recordedProblem(error) : problem };
}

/** Whether no live worker can take a run, and why none could start it, if that is recorded. */
async function blockOf(
  services: ServerServices,
  run: Parameters<typeof isWithoutWorker>[1],
  blocked: RunBlock | null,
): Promise<Pick<RunView, "withoutWorker" | "problem">> {
  const withoutWorker = await isWithoutWorker(services, run);
  if (blocked !== null) return { withoutWorker, problem: recordedProblem(blocked) };
  if (!withoutWorker) return { withoutWorker, problem: null };
  const { agent, group } = run;
  const which = agent === null && group === null ? "that could take it" : `that has ${show(agent ?? group)}`;
  const message = `There is no worker ${which}; the run waits until one is started.`;
  return { withoutWorker, problem: recordedProblem({ code: "AGENT_NOT_FOUND", message }) };
}

async function isWithoutWorker(
  { store, roster }: ServerServices,
  {
    sessionId,
    runId,
    status,
    agent,
    group,
    requestedAt,
    startedAt,
  }: Omit<RunView, "withoutWorker" | "notBefore" | "endedAt" | "questions" | "output" | "problem">,
): Promise<boolean> {
  if (status !== "requested" && status !== "interrupted") return false;
  // A requested run that has started before was parked since, and may be bound to a machine.
  const parked = status === "requested" && (startedAt !== null || requestedAt === null);
  const host = parked ? await parkedHost(store, sessionId, { runId, state: "answered" }) : null;
  return roster.lacks(host === null ? (agent ?? group ?? "") : runnerOfHost(host));
}

async function openStatus(
  store: ServerServices["store"],
  sessionId: string,
  { open }: RunState,
): Promise<RunView["status"]> {
  const isHeld = open?.state === "started" && (await store.leaseOf(sessionId)) !== null;
  return openStatusOf(open ?? { state: "requested" }, isHeld);
}
