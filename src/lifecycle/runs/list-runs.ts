import { readRequest } from "../../agent/persist/claim-run.ts";
import { defined } from "../../internal/defined.ts";
import type { JsonObject, JsonValue } from "../../internal/json.ts";
import type { EntryOf } from "../../session/log/entry.ts";
import { SessionError, show } from "../../session/errors.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import { inputIdOf, type OpenRun, type RunsWord } from "../../session/log/open-runs.ts";
import type { SessionStore } from "../../session/store.ts";
import type { Viewer } from "../access.ts";

/** Which open runs to list. */
export interface RunsQuery {
  /**
   * Those that wait to begin or to go on (`requested`), that someone has now (`running`), that wait for an answer
   * (`parked`), or whose process is gone (`interrupted`).
   */
  readonly state: RunsWord;
  /** Of whose sessions (default: everyone's that the caller may see). */
  readonly userId?: string;
  /** Of at most this many sessions (default 100, at most 1,000). */
  readonly limit?: number;
  /** Where the page before ended: its `next`. */
  readonly cursor?: string;
}

/** What a parked run asks, for whoever is to answer. */
export interface OpenQuestion {
  /** The entry that asks: what `approve` and `deny` take. */
  readonly question: string;
  readonly callId: string;
  readonly askedAt: string;
  /** The tool, its arguments, what the call can do at most and where it would act; null where the log does not say. */
  readonly name: string | null;
  readonly arguments: JsonValue;
  readonly effects: JsonValue;
  readonly reach: JsonValue;
}

/** A run that has not ended. */
export interface OpenRunView {
  readonly sessionId: string;
  readonly userId: string | null;
  readonly runId: string;
  readonly state: RunsWord;
  /** Who is to answer, when that was asked for and by whom; null for a run that began without a request. */
  readonly agent: string | null;
  readonly group: string | null;
  /** The model that it is to use instead of the agent's own, as `provider/id`. */
  readonly model: string | null;
  readonly requestedAt: string | null;
  /** When it first began; null also for a run that began without a request. */
  readonly startedAt: string | null;
  readonly by: string | null;
  readonly notBefore?: string;
  /** Those without an answer. */
  readonly questions: readonly OpenQuestion[];
  /** From when on what it asks counts as denied. */
  readonly expiresAt?: string;
}

/** One page of open runs; `next` is the cursor of the following page, or null. */
export interface RunsPage {
  readonly items: readonly OpenRunView[];
  readonly next: string | null;
}

/** How far back the questions of a run are looked for. */
const LOOKED_BACK_MAX = 1000;

const STATES: Readonly<Record<RunsWord, readonly OpenRun["state"][]>> = {
  requested: ["requested", "answered"],
  running: ["started"],
  parked: ["parked"],
  interrupted: ["started"],
};

/** One page of the open runs that a viewer may see, by their state. Reads no more than what the page shows. */
export async function listRuns(store: SessionStore, query: RunsQuery, viewer: Viewer): Promise<RunsPage> {
  const { state, userId = viewer ?? undefined, limit, cursor } = query;
  if (!Object.hasOwn(STATES, String(state))) {
    throw new SessionError(
      "INVALID_OPTION",
      `state is ${show(state)}; give "requested", "running", "parked" or "interrupted".`,
    );
  }
  if (viewer !== null && userId !== viewer) return { items: [], next: null };
  const page = await store.list({ runs: state, ...defined({ userId, limit, cursor }) });
  const items: OpenRunView[] = [];
  for (const head of page.items) {
    for (const run of head.openRuns.filter((open) => STATES[state].includes(open.state)))
      items.push(await viewOf(store, head, run, state));
  }
  return { items, next: page.next };
}

/** The open runs of one session, in the order of its log, with what those ask that someone has now. */
export async function openRunsOf(store: SessionStore, head: SessionHead): Promise<readonly OpenRunView[]> {
  const { openRuns, header } = head;
  const isHeld = openRuns.some(({ state }) => state === "started") && (await store.leaseOf(header.id)) !== null;
  const views: OpenRunView[] = [];
  for (const run of openRuns) {
    if (run.state !== "started")
      views.push(await viewOf(store, head, run, run.state === "parked" ? "parked" : "requested"));
    else {
      const questions = await askedLately(store, header.id, run.runId);
      views.push(await viewOf(store, head, { ...run, questions }, isHeld ? "running" : "interrupted"));
    }
  }
  return views;
}

/** The questions of a run that has started and that have no answer: all of them are about its last answer with calls. */
async function askedLately(store: SessionStore, sessionId: string, runId: string): Promise<readonly string[]> {
  const [asked, answered] = [[] as string[], new Set<string>()];
  for await (const entry of store.read(sessionId, { reverse: true, limit: LOOKED_BACK_MAX })) {
    if (entry.type === "message" && entry.message.role === "assistant" && entry.message.toolCalls !== undefined) break;
    if (entry.type !== "approval" || entry.runId !== runId) continue;
    if (entry.decision === undefined) asked.unshift(entry.id);
    else if (entry.question !== undefined) answered.add(entry.question);
  }
  return asked.filter((question) => !answered.has(question));
}

async function viewOf(
  store: SessionStore,
  { header }: SessionHead,
  { runId, notBefore, questions = [], expiresAt }: OpenRun,
  state: RunsWord,
): Promise<OpenRunView> {
  const request = await readRequest(store, header.id, runId);
  const input = await store.getEntry(header.id, inputIdOf(runId));
  const asked = await Promise.all(questions.map((question) => store.getEntry(header.id, question)));
  return {
    sessionId: header.id,
    userId: header.userId,
    runId,
    state,
    agent: request?.agent ?? null,
    group: request?.group ?? null,
    model: request?.model ?? null,
    requestedAt: request?.timestamp ?? null,
    startedAt: input?.timestamp ?? null,
    by: request?.by ?? null,
    questions: asked.flatMap((question) => (question?.type === "approval" ? questionOf(question) : [])),
    ...defined({ notBefore, expiresAt }),
  };
}

function questionOf({ id, callId, timestamp, asked = {} }: EntryOf<"approval">): OpenQuestion {
  const { name = null, arguments: args = null, effects = null, reach = null } = asked as JsonObject;
  return {
    question: id,
    callId,
    askedAt: timestamp,
    name: typeof name === "string" ? name : null,
    arguments: args,
    effects,
    reach,
  };
}
