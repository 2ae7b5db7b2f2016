import { hasBegun } from "../../../session/log/run-fold.ts";
import { z } from "zod";
import { SessionBusyError, SessionError } from "../../../session/errors.ts";
import { runnerOf } from "../../../workers/notify-session.ts";
import { encodeSegment } from "../../path-segment.ts";
import type { RunView, FleetView } from "../../run-wire.ts";
import { mountAgUi } from "../ag-ui/ag-ui-routes.ts";
import { mountChat } from "../chat/chat-routes.ts";
import { HttpError } from "../http-error.ts";
import { answer, eventStream, noContent, type Route, route, type RouteCall, type ServerApp } from "../route.ts";
import { limit } from "../schema.ts";
import type { Caller, ServerServices } from "../server-services.ts";
import { entry } from "../routes/entry-schemas.ts";
import { visibleHead } from "../routes/session-access.ts";
import { emptyRequest, reasonRequest } from "../routes/wire-schemas.ts";
import { Backlog, draining, requestRun, writableHead } from "./request-run.ts";
import { runEvent } from "./run-event-schemas.ts";
import { framesOf } from "./run-feed.ts";
import { openFeeds, type RunFeeds } from "./run-feeds.ts";
import * as schemas from "./run-schemas.ts";
import { listOpenRuns, listSessionRuns, readRun } from "./run-views.ts";
import { answerQuestion, cancelRun } from "./cancel-and-answer.ts";

const RUN = { 200: { description: "The run.", schema: schemas.runView } } as const;
const ASKED = { 202: { description: "The run, which continues in the background.", schema: schemas.runView } } as const;

/** Adds the routes of runs and of live events. */
export function mountRuns(app: ServerApp, services: ServerServices): void {
  const backlog = new Backlog(services.store, app.limits.maxWaiting);
  const feeds = openFeeds(app, services);
  mountAsking(app, services, backlog);
  mountListing(app, services);
  mountRunInput(app, services);
  mountStreams(app, services, feeds);
  mountChat(app, services, { backlog, feeds });
  mountAgUi(app, services, { backlog, feeds });
}

function mountAsking(app: ServerApp, services: ServerServices, backlog: Backlog): void {
  route(app, {
    method: "post",
    path: "/api/sessions/:id/runs",
    operationId: "startRun",
    summary: "Requests a run of a session by an agent or a group; idempotent by runId or Idempotency-Key.",
    needs: "run",
    body: schemas.runRequest,
    problems: [503],
    content: true,
    answers: ASKED,
    async handle({ param, body, caller, request: { headers } }) {
      const sessionId = param("id");
      const request = { ...body, ...keyOf(headers, body.runId) };
      const { head, runId } = await requestRun(services, backlog, { sessionId, request, caller });
      const [view, budget] = await Promise.all([readRun(services, head, runId), budgetOf(services, caller)]);
      return asked(view, budget);
    },
  });
  route(app, {
    method: "post",
    path: "/api/sessions/:id/recover",
    operationId: "recoverSession",
    summary: "Makes a worker continue the session's interrupted run, or begin the one that waits.",
    needs: "run",
    body: emptyRequest,
    answers: { ...ASKED, 204: { description: "The session has no run to recover." } },
    async handle({ param, caller }) {
      const sessionId = param("id");
      if (services.drain.aborted) throw draining();
      const { openRuns } = await writableHead(services, sessionId, caller);
      if (openRuns.length === 0) return noContent();
      const lease = await services.store.leaseOf(sessionId);
      if (lease !== null) throw new SessionBusyError(sessionId, `run ${lease.runId}`);
      const due = await services.manager.due(sessionId);
      if (due === null) return noContent();
      await services.queue.notify(sessionId, { runner: await runnerOf(services.store, due.head, due.run) });
      return asked(await viewOf(services, sessionId, due.run.runId, caller));
    },
  });
}

function mountListing(app: ServerApp, services: ServerServices): void {
  route(app, {
    method: "get",
    path: "/api/runs",
    operationId: "listRuns",
    summary: "Open runs, one page, filtered by state: of the caller's sessions, or of all for an administrator.",
    query: schemas.runsQuery,
    answers: { 200: { description: "The page.", schema: schemas.runPage } },
    handle: async ({ query, as }) => answer(await listOpenRuns(services, query, as)),
  });
  route(app, {
    method: "get",
    path: "/api/fleet",
    operationId: "getFleet",
    summary:
      "The workers with their runs, and the waiting runs: of the caller's sessions, or of all for an administrator.",
    answers: { 200: { description: "The fleet.", schema: schemas.fleetView } },
    handle: async ({ caller }) => answer(await readFleet(services, caller)),
  });
  route(app, {
    method: "get",
    path: "/api/sessions/:id/runs",
    operationId: "listSessionRuns",
    summary: "The runs of a session, the latest first: all open ones, and the latest others.",
    query: z.strictObject({ limit: limit.optional() }),
    answers: { 200: { description: "The runs.", schema: schemas.runList } },
    async handle({ param, query, caller }) {
      const head = await visibleHead(services, param("id"), caller);
      return answer({ items: await listSessionRuns(services, head, query.limit) });
    },
  });
  route(app, {
    method: "get",
    path: "/api/sessions/:id/runs/:runId",
    operationId: "getRun",
    summary: "The state of a run.",
    answers: RUN,
    handle: async ({ param, caller }) => answer(await viewOf(services, param("id"), param("runId"), caller)),
  });
}

function mountRunInput(app: ServerApp, services: ServerServices): void {
  const { manager } = services;
  /** Adds a route that sends something to a run and answers with the run's state. */
  const add = <Body>(
    added: Pick<Route<unknown, Body>, "path" | "operationId" | "summary" | "needs" | "body" | "content" | "frees">,
    say: (call: RouteCall<unknown, Body>, sessionId: string) => Promise<string>,
  ): void =>
    route<unknown, Body>(app, {
      ...added,
      method: "post",
      answers: RUN,
      async handle(call) {
        const sessionId = call.param("id");
        const runId = await say(call, sessionId);
        return answer(await viewOf(services, sessionId, runId, call.caller));
      },
    });
  add(
    {
      path: "/api/sessions/:id/runs/:runId/cancel",
      operationId: "cancelRun",
      frees: true,
      summary: "Cancels a run in any process; its messages are kept.",
      needs: "run",
      body: reasonRequest,
    },
    async ({ param, body, caller, as }, sessionId) => {
      const { runId } = await viewOf(services, sessionId, param("runId"), caller);
      await cancelRun(services, sessionId, { runId, ...body }, as);
      return runId;
    },
  );
  add(
    {
      path: "/api/sessions/:id/questions/:question",
      operationId: "answerQuestion",
      frees: true,
      summary: "Approves or denies a call that waits for approval. The first answer counts.",
      needs: "approve",
      body: schemas.answerRequest,
    },
    ({ param, body, as }, sessionId) => answerQuestion(services, { sessionId, question: param("question"), body, as }),
  );
  for (const kind of ["steer", "followUp"] as const) {
    add(
      {
        path: kind === "steer" ? "/api/sessions/:id/steer" : "/api/sessions/:id/follow-ups",
        operationId: `${kind}Run`,
        summary:
          kind === "steer"
            ? "Adds input to the run that has begun, before the model's next turn."
            : "Adds input to the run that has begun, delivered when the model would stop.",
        needs: "run",
        body: schemas.inputRequest,
        content: true,
      },
      async ({ body, caller, as }, sessionId) => {
        const { openRuns } = await writableHead(services, sessionId, caller);
        const run = openRuns.find(hasBegun);
        if (run !== undefined && (await viewOf(services, sessionId, run.runId, caller)).group !== null) {
          throw new SessionError(
            "INVALID_OPTION",
            `Run ${run.runId} is a group's, which is told something by adding a turn to its session.`,
          );
        }
        await manager[kind](sessionId, body.content, as);
        return run?.runId ?? "";
      },
    );
  }
}

function mountStreams(app: ServerApp, services: ServerServices, { streams, watches, follow }: RunFeeds): void {
  const { drain } = services;
  route(app, {
    method: "get",
    path: "/api/sessions/:id/runs/:runId/events",
    operationId: "readRunEvents",
    summary: "Streams the events of a run, from its beginning or after the event in Last-Event-ID.",
    problems: [410],
    answers: {
      ...eventStream("an event of the run, as JSON", runEvent),
      204: { description: "The event in Last-Event-ID was the last one of the run." },
    },
    async handle({ param, caller, admission, request }) {
      if (drain.aborted) throw draining();
      const head = await visibleHead(services, param("id"), caller);
      const feed = await follow(head, param("runId"), request.headers.get("last-event-id"));
      return feed === null ? noContent() : streams.open(framesOf(feed), request, admission);
    },
  });
  route(app, {
    method: "get",
    path: "/api/sessions/:id/watch",
    operationId: "watchSession",
    summary: "Streams the entries of a session as they are appended, by any process.",
    query: schemas.watchQuery,
    answers: eventStream("an entry, as JSON", entry),
    async handle({ param, query, caller, admission, request }) {
      if (drain.aborted) throw draining();
      const head = await visibleHead(services, param("id"), caller);
      const last = request.headers.get("last-event-id");
      const after = last === null ? (query.after ?? null) : positionOf(last);
      return streams.open(watches.join(head, after), request, admission);
    },
  });
}

async function viewOf(services: ServerServices, sessionId: string, runId: string, caller: Caller): Promise<RunView> {
  return readRun(services, await visibleHead(services, sessionId, caller), runId);
}

function asked(run: RunView, more: Readonly<Record<string, string>> = {}): Response {
  const location = `/api/sessions/${encodeSegment(run.sessionId)}/runs/${encodeSegment(run.runId)}`;
  return answer(run, { status: 202, headers: { ...more, location } });
}

/** The header with what the caller, who pays for the run, has left of each limit; none without budgets. */
async function budgetOf({ manager }: ServerServices, { userId }: Caller): Promise<Readonly<Record<string, string>>> {
  if (manager.budgets === null) return {};
  const levels = await manager.budgets.levels(userId);
  const texts = levels.map(
    ({ window, unit, limit, spent, reserved }) =>
      `${window};unit=${unit};limit=${limit};spent=${spent};reserved=${reserved}`,
  );
  return { "x-skein-budget": texts.join(", ") };
}

/** The caller's own id for a run, from the body or the header. */
function keyOf(headers: Headers, runId: string | undefined): { readonly runId?: string } {
  const key = headers.get("idempotency-key");
  if (key === null) return {};
  if (key !== "" && key.length <= 512 && (runId ?? key) === key) return { runId: key };
  throw new HttpError(
    "INVALID_REQUEST",
    "Idempotency-Key is empty, too long or different from runId; give one of them.",
  );
}

function positionOf(lastEventId: string): number {
  if (/^(?:-1|\d{1,15})$/.test(lastEventId)) return Number(lastEventId);
  throw new HttpError("EVENT_ID_UNKNOWN", "Last-Event-ID is not the position of an entry; leave it out.");
}

/** The most sessions whose waiting runs are shown. */
const WAITING_SESSIONS_MAX = 50;

/** The fleet as visible to a caller. Reads only what is shown, and the number of waiting runs. */
async function readFleet(services: ServerServices, caller: Caller): Promise<FleetView> {
  const { roster, store } = services;
  const pageOf = (state: "requested" | "interrupted"): Promise<FleetView["requested"]> =>
    listOpenRuns(services, { state, limit: WAITING_SESSIONS_MAX }, { actor: caller });
  roster.ask();
  return {
    waiting: await store.count({ dueBefore: new Date().toISOString() }),
    requested: await pageOf("requested"),
    interrupted: await pageOf("interrupted"),
    workers: roster.workers.map((worker) => (caller.admin ? worker : seenBy(caller, worker))),
  };
}

function seenBy({ userId }: Caller, worker: FleetView["workers"][number]): FleetView["workers"][number] {
  return { ...worker, name: null, host: null, runs: worker.runs.filter((run) => run.userId === userId) };
}
