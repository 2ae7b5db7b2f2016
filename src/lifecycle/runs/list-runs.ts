import { readRequest } from "../../agent/persist/claim-run.ts";
import { agentOf } from "./due-run.ts";
import { defined } from "../../internal/defined.ts";
import type { JsonObject, JsonValue } from "../../internal/json.ts";
import type { EntryOf } from "../../session/log/entry.ts";
import { SessionError, show } from "../../session/errors.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import { asksOf, blockedIdOf, inputIdOf, type OpenRun, type RunsWord } from "../../session/log/open-runs.ts";
import type { SessionStore } from "../../session/store.ts";
import type { Viewer } from "../access.ts";

/** How a run stands that has not ended. */
export type OpenRunState = "requested" | "running" | "parked" | "interrupted";

/** Which open runs to list. */
export interface RunsQuery {
  /**
   * Those that wait to begin or to go on (`requested`), that someone has now (`running`), that have released their session
   * until an answer (`parked`), whose process is gone (`interrupted`), or, whatever their state, that ask something (`asking`).
   */
  readonly state: OpenRunState | "asking";
  /** Of whose sessions (default: everyone's that the caller may see). */
  readonly userId?: string;
  /** Of at most this many sessions (default 100, at most 1,000). */
  readonly limit?: number;
  /** Where the page before ended: its `next`. */
  readonly cursor?: string;
}

/** What an open run asks, for whoever is to answer. */
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
  readonly state: OpenRunState;
  /** Who is to answer, or last answered, by name; when that was asked for and by whom is null where nobody asked for it. */
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
  /** Why no worker could begin it, or go on with it, the last time that one tried; null where none has failed. */
  readonly blocked: RunBlock | null;
}

/** Why no worker could begin a run. */
export interface RunBlock {
  /** One of docs/errors.md. */
  readonly code: string;
  readonly message: string;
  readonly since: string;
}

/** One page of open runs; `next` is the cursor of the following page, or null. */
export interface RunsPage {
  readonly items: readonly OpenRunView[];
  readonly next: string | null;
}

/** In which listing of a store runs are found that stand so, and which of the open runs of a session those are. */
const LISTINGS: Readonly<
  Record<RunsQuery["state"], { readonly runs: RunsWord; readonly holds: (run: OpenRun) => boolean }>
> = {
  requested: { runs: "requested", holds: ({ state }) => state === "requested" || state === "answered" },
  running: { runs: "running", holds: ({ state }) => state === "started" },
  parked: { runs: "asking", holds: ({ state }) => state === "parked" },
  interrupted: { runs: "interrupted", holds: ({ state }) => state === "started" },
  asking: { runs: "asking", holds: (run) => asksOf(run).length > 0 },
};

/** One page of the open runs that a viewer may see, by their state. Reads no more than what the page shows. */
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

/** Whether someone has the run of a session that has started. */
async function isHeldNow(store: SessionStore, { openRuns, header }: SessionHead): Promise<boolean> {
  return openRuns.some(({ state }) => state === "started") && (await store.leaseOf(header.id)) !== null;
}

function stateOf({ state }: OpenRun, isHeld: boolean): OpenRunState {
  if (state === "parked") return "parked";
  if (state !== "started") return "requested";
  return isHeld ? "running" : "interrupted";
}

async function viewOf(store: SessionStore, head: SessionHead, run: OpenRun, isHeld: boolean): Promise<OpenRunView> {
  const { header } = head;
  const { runId, notBefore, expiresAt, blocked } = run;
  const state = stateOf(run, isHeld);
  // What runs inside of tools ask is gone with the process that had them.
  const questions = state === "interrupted" ? (run.questions ?? []) : asksOf(run);
  const request = await readRequest(store, header.id, runId);
  const input = await store.getEntry(header.id, inputIdOf(runId));
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
    startedAt: input?.timestamp ?? null,
    by: request?.by ?? null,
    blocked: blocked === undefined ? null : await readBlock(store, header.id, runId, blocked),
    questions: asked.flatMap((question) => (question?.type === "approval" ? questionOf(question) : [])),
    ...defined({ notBefore, expiresAt }),
  };
}

/** The words about a reason why nobody could begin a run. */
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
