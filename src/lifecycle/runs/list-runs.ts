import { readRequest } from "../../agent/persist/claim-run.ts";
import { agentOf } from "./due-run.ts";
import { defined } from "../../internal/defined.ts";
import type { JsonObject, JsonValue } from "../../internal/json.ts";
import type { EntryOf } from "../../session/log/entry.ts";
import { SessionError, show } from "../../session/errors.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import { asksOf, blockedIdOf, inputIdOf, type OpenRun, type RunsCondition } from "../../session/log/open-runs.ts";
import { type OpenRunStatus, openStatusOf } from "../../session/log/run-fold.ts";
import type { SessionStore } from "../../session/store.ts";
import type { Viewer } from "../access.ts";

/** The state of an open run. */
export type OpenRunState = OpenRunStatus;

/** Which open runs to list. */
export interface RunsQuery {
  /**
   * The state of the runs: waiting to start or to continue (`requested`), held by a process (`running`), session
   * released until an answer (`parked`), process gone (`interrupted`), or with an open question in any state
   * (`asking`).
   */
  readonly state: OpenRunState | "asking";
  /** Only runs in sessions of this user (default: of all that the caller may see). */
  readonly userId?: string;
  /** The most sessions (default 100, at most 1,000). */
  readonly limit?: number;
  /** The `next` of the previous page. */
  readonly cursor?: string;
}

/** A question of an open run. */
export interface OpenQuestion {
  /** The id of the question, for `approve` and `deny`. */
  readonly question: string;
  readonly callId: string;
  readonly askedAt: string;
  /**
   * The tool, its arguments, the most that the call can do, and where it would act; null if the log does not record
   * them.
   */
  readonly name: string | null;
  readonly arguments: JsonValue;
  readonly effects: JsonValue;
  readonly reach: JsonValue;
}

/** An open run. */
export interface OpenRunView {
  readonly sessionId: string;
  readonly userId: string | null;
  readonly runId: string;
  readonly state: OpenRunState;
  /**
   * The name of the agent that must answer or last answered. The time and the author of the request are null for a run
   * without one.
   */
  readonly agent: string | null;
  readonly group: string | null;
  /** The model to use instead of the agent's own, as `provider/id`. */
  readonly model: string | null;
  readonly requestedAt: string | null;
  /** When it first started. */
  readonly startedAt: string | null;
  readonly by: string | null;
  readonly notBefore?: string;
  /** The unanswered questions. */
  readonly questions: readonly OpenQuestion[];
  /** The time from which its questions count as denied. */
  readonly expiresAt?: string;
  /** Why no worker could start or continue it at the last attempt; null if none has failed. */
  readonly blocked: RunBlock | null;
}

/** Why no worker could start a run. */
export interface RunBlock {
  /** A code of docs/errors.md. */
  readonly code: string;
  readonly message: string;
  readonly since: string;
}

/** One page of open runs; `next` is the cursor of the following page, or null. */
export interface RunsPage {
  readonly items: readonly OpenRunView[];
  readonly next: string | null;
}

/** For each state: the store listing to search, and how to select the matching open runs of a session. */
const LISTINGS: Readonly<
  Record<RunsQuery["state"], { readonly runs: RunsCondition; readonly holds: (run: OpenRun) => boolean }>
> = {
  requested: { runs: "requested", holds: (run) => openStatusOf(run, false) === "requested" },
  running: { runs: "running", holds: ({ state }) => state === "started" },
  parked: { runs: "asking", holds: ({ state }) => state === "parked" },
  interrupted: { runs: "interrupted", holds: ({ state }) => state === "started" },
  asking: { runs: "asking", holds: (run) => asksOf(run).length > 0 },
};

/** One page of the open runs that a viewer may see, by state. Reads only what the page shows. */
export async function listRuns(store: SessionStore, query: RunsQuery, viewer: Viewer): Promise<RunsPage> {
  const { state, userId = viewer ?? undefined, limit, cursor } = query;
  if (!Object.hasOwn(LISTINGS, String(state))) {
    throw new SessionError(
      "INVALID_OPTION",
      `state is ${show(state)}; give "requested", "running", "parked", "interrupted" or "asking".`,
    );
  }
  if (viewer !== null && userId !== viewer) return { items: [], next: null };
  const { runs, holds } = LISTINGS[state];
  const page = await store.list({ runs, ...defined({ userId, limit, cursor }) });
  const items: OpenRunView[] = [];
  for (const head of page.items) {
    const isHeld = state === "asking" ? await isHeldNow(store, head) : state === "running";
    for (const run of head.openRuns.filter(holds)) {
      const view = await viewOf(store, head, run, isHeld);
      if (state !== "asking" || view.questions.length > 0) items.push(view);
    }
  }
  return { items, next: page.next };
}

/** The open runs of one session, in the order of its log. */
export async function openRunsOf(store: SessionStore, head: SessionHead): Promise<readonly OpenRunView[]> {
  const isHeld = await isHeldNow(store, head);
  const views: OpenRunView[] = [];
  for (const run of head.openRuns) views.push(await viewOf(store, head, run, isHeld));
  return views;
}

/** Whether a process holds the started run of a session. */
async function isHeldNow(store: SessionStore, { openRuns, header }: SessionHead): Promise<boolean> {
  return openRuns.some(({ state }) => state === "started") && (await store.leaseOf(header.id)) !== null;
}

async function viewOf(store: SessionStore, head: SessionHead, run: OpenRun, isHeld: boolean): Promise<OpenRunView> {
  const { header } = head;
  const { runId, notBefore, expiresAt, blocked } = run;
  const state = openStatusOf(run, isHeld);
  // Questions of runs inside tools are lost with their process.
  const questions = state === "interrupted" ? (run.questions ?? []) : asksOf(run);
  const request = await readRequest(store, header.id, runId);
  const input = request === null ? null : await store.getEntry(header.id, inputIdOf(runId));
  const asked = await Promise.all(questions.map((question) => store.getEntry(header.id, question)));
  return {
    sessionId: header.id,
    userId: header.userId,
    runId,
    state,
    agent: await agentOf(store, head, run, request),
    group: request?.group ?? null,
    model: request?.model ?? null,
    requestedAt: request?.timestamp ?? null,
    startedAt: (request === null ? await startOf(store, header.id, run) : input?.timestamp) ?? null,
    by: request?.by ?? null,
    blocked: blocked === undefined ? null : await readBlock(store, header.id, runId, blocked),
    questions: asked.flatMap((question) => (question?.type === "approval" ? questionOf(question) : [])),
    ...defined({ notBefore, expiresAt }),
  };
}

/** When a run without a request first started: its start is in the append that its first entry begins. */
async function startOf(store: SessionStore, sessionId: string, { runId, first }: OpenRun): Promise<string | undefined> {
  // Earlier versions did not record the first entry of a run.
  if (first === undefined) return undefined;
  for await (const entry of store.read(sessionId, { after: first - 1 }))
    if (entry.type === "run" && entry.runId === runId) return entry.timestamp;
  return undefined;
}

/** The recorded reason why no worker could start a run. */
export async function readBlock(
  store: SessionStore,
  sessionId: string,
  runId: string,
  code: string,
): Promise<RunBlock | null> {
  const entry = await store.getEntry(sessionId, blockedIdOf(runId, code));
  return entry?.type === "run_blocked" ? { code, message: entry.message, since: entry.timestamp } : null;
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
