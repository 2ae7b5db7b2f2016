import type { z } from "zod";
import { encodeSegment } from "../../path-segment.ts";
import { HttpError } from "../http-error.ts";
import { answer, noContent, type Route, route, type RouteCall, type ServerApp } from "../route.ts";
import type { ServerRuns, ServerServices } from "../server-services.ts";
import { visibleHead } from "../session-access.ts";
import { entry } from "../wire-schemas.ts";
import { EventStreams } from "./event-streams.ts";
import type { HostedRun } from "./hosted-run.ts";
import { runEvent } from "./run-event-schemas.ts";
import { RunRegistry } from "./run-registry.ts";
import * as schemas from "./run-schemas.ts";
import { SessionWatches } from "./session-watches.ts";

const RUN = { 200: { description: "The run.", schema: schemas.runView } } as const;
const STARTED = { 202: { description: "The run, which goes on.", schema: schemas.runView } } as const;
/** A stream of Server-Sent Events, and what the data of each of them is. */
const streamOf = (data: string, schema: z.ZodType) =>
  ({
    200: { description: `Server-Sent Events; the data of each is ${data}.`, contentType: "text/event-stream", schema },
  }) as const;

/** Adds the routes of runs and of live events; what comes back is for whoever shuts the server down. */
export function mountRuns(app: ServerApp, services: ServerServices): ServerRuns {
  const registry = new RunRegistry(services, app.limits);
  const streams = new EventStreams(app.limits);
  const watches = new SessionWatches(services.store, services.report);
  services.drain.addEventListener("abort", () => streams.close(), { once: true });
  mountStarting(app, registry);
  mountRunning(app, registry);
  mountStreams(app, services, { registry, streams, watches });
  return registry;
}

function mountStarting(app: ServerApp, registry: RunRegistry): void {
  route(app, {
    method: "post",
    path: "/api/sessions/:id/runs",
    operationId: "startRun",
    summary: "Runs a session through an agent or a group; the events tell what comes of it.",
    needs: "run",
    body: schemas.runRequest,
    problems: [502],
    content: true,
    answers: STARTED,
    handle: async ({ param, body, caller, signal }) => started(await registry.start(param("id"), body, caller, signal)),
  });
  route(app, {
    method: "get",
    path: "/api/sessions/:id/runs",
    operationId: "listRuns",
    summary: "The runs of a session that this server has or had lately, the latest first.",
    answers: { 200: { description: "The runs.", schema: schemas.runList } },
    handle: async ({ param, caller }) =>
      answer({ items: (await registry.list(param("id"), caller)).map((run) => run.view()) }),
  });
  route(app, {
    method: "post",
    path: "/api/sessions/:id/recover",
    operationId: "recoverSession",
    summary: "Goes on with the run of a session that was interrupted.",
    needs: "run",
    problems: [502],
    body: schemas.emptyRequest,
    answers: { ...STARTED, 204: { description: "No run of the session was interrupted." } },
    async handle({ param, caller }) {
      const run = await registry.recover(param("id"), caller);
      return run === null ? noContent() : started(run);
    },
  });
}

function mountRunning(app: ServerApp, registry: RunRegistry): void {
  /** A route that does something with a run and answers with how it stands then. */
  const add = <Body>(
    added: Pick<Route<unknown, Body>, "method" | "path" | "operationId" | "summary" | "needs" | "body" | "content">,
    act: (run: HostedRun, call: RouteCall<unknown, Body>) => void | Promise<void>,
  ): void =>
    route<unknown, Body>(app, {
      ...added,
      answers: RUN,
      async handle(call) {
        const run = registry.find(call.param("runId"), call.caller);
        await act(run, call);
        return answer(run.view());
      },
    });
  add({ method: "get", path: "/api/runs/:runId", operationId: "getRun", summary: "How a run stands." }, () => {});
  add(
    {
      method: "post",
      path: "/api/runs/:runId/abort",
      operationId: "abortRun",
      summary: "Stops a run at once; what was said stays.",
      needs: "run",
      body: schemas.abortRequest,
    },
    (run, { body }) => run.abort(body.reason),
  );
  add(
    {
      method: "post",
      path: "/api/runs/:runId/approvals/:callId",
      operationId: "decideCall",
      summary: "Lets a call run that waits for approval, or refuses it.",
      needs: "approve",
      body: schemas.approvalRequest,
    },
    (run, { param, body }) => run.decide(param("callId"), body),
  );
  add(
    {
      method: "post",
      path: "/api/runs/:runId/steer",
      operationId: "steerRun",
      summary: "Says something before the model's next turn.",
      needs: "run",
      body: schemas.inputRequest,
      content: true,
    },
    (run, { body }) => run.say("steer", body.content),
  );
  add(
    {
      method: "post",
      path: "/api/runs/:runId/follow-ups",
      operationId: "followUpRun",
      summary: "Says something when the model would stop.",
      needs: "run",
      body: schemas.inputRequest,
      content: true,
    },
    (run, { body }) => run.say("followUp", body.content),
  );
}

interface Live {
  readonly registry: RunRegistry;
  readonly streams: EventStreams;
  readonly watches: SessionWatches;
}

function mountStreams(app: ServerApp, services: ServerServices, { registry, streams, watches }: Live): void {
  const checkOpen = (): void => {
    if (services.drain.aborted) throw new HttpError("DRAINING", "The server is shutting down; try again later.");
  };
  route(app, {
    method: "get",
    path: "/api/runs/:runId/events",
    operationId: "readRunEvents",
    summary: "What happens in a run, from its beginning or from the event that Last-Event-ID names.",
    problems: [410],
    answers: {
      ...streamOf("an event of the run, as JSON", runEvent),
      204: { description: "The run has ended with the event that Last-Event-ID names." },
    },
    handle({ param, caller, admission, request }) {
      checkOpen();
      const source = registry.find(param("runId"), caller).events.read(request.headers.get("last-event-id"));
      return source === null ? noContent() : streams.open(source, request, admission);
    },
  });
  route(app, {
    method: "get",
    path: "/api/sessions/:id/watch",
    operationId: "watchSession",
    summary: "The entries of a session as they come, whichever process appends them.",
    query: schemas.watchQuery,
    answers: streamOf("an entry, as JSON", entry),
    async handle({ param, query, caller, admission, request }) {
      checkOpen();
      const sessionId = param("id");
      await visibleHead(services, sessionId, caller);
      const last = request.headers.get("last-event-id");
      const after = last === null ? (query.after ?? null) : positionOf(last);
      return streams.open(await watches.join(sessionId, after), request, admission);
    },
  });
}

function started(run: HostedRun): Response {
  return answer(run.view(), { status: 202, headers: { location: `/api/runs/${encodeSegment(run.runId)}` } });
}

function positionOf(lastEventId: string): number {
  if (/^(?:-1|\d{1,15})$/.test(lastEventId)) return Number(lastEventId);
  throw new HttpError("EVENT_ID_UNKNOWN", "Last-Event-ID is not the position of an entry; leave it out.");
}
