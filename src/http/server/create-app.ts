import { randomUUID } from "node:crypto";
import { Hono, type MiddlewareHandler } from "hono";
import { mountAbout } from "./routes/about-routes.ts";
import { mountAnalytics } from "./routes/analytics-routes.ts";
import { AnswerBudget } from "./answer-budget.ts";
import { BodyBudget } from "./body-budget.ts";
import { mountBlobs } from "./routes/blob-routes.ts";
import { mountBranches } from "./routes/branches-routes.ts";
import type { CheckedLimits } from "./gate/check-server-limits.ts";
import { mountCheckpoints } from "./routes/checkpoints-routes.ts";
import { mountCache } from "./routes/cache-routes.ts";
import { mountContext } from "./routes/context-routes.ts";
import { mountEdits } from "./routes/edit-routes.ts";
import { mountEntries } from "./routes/entries-routes.ts";
import { type Gate, isGuarded } from "./gate/gate.ts";
import { HeavyWork } from "./heavy-work.ts";
import { HttpError } from "./http-error.ts";
import { problemResponse } from "./problem.ts";
import type { Route, ServerApp, ServerContext, ServerEnvironment } from "./route.ts";
import { mountMcp } from "./routes/mcp-routes.ts";
import { mountPrograms } from "./routes/programs-routes.ts";
import { mountRuns } from "./runs/mount-runs.ts";
import { mountSearch } from "./routes/search-routes.ts";
import type { ServerLogger, ServerServices } from "./server-services.ts";
import { mountSessions } from "./routes/sessions-routes.ts";
import type { StudioFiles } from "./studio-files.ts";
import { mountTransfer } from "./routes/transfer-routes.ts";
import { mountTree } from "./routes/tree-routes.ts";
import { mountUsers } from "./routes/users-routes.ts";

const HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "x-frame-options": "DENY",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "no-store",
};

/** The parts of the application. */
export interface AppInit {
  readonly services: ServerServices;
  readonly gate: Gate;
  readonly limits: CheckedLimits;
  readonly studio: StudioFiles;
  readonly logger: ServerLogger | null;
}

/** Creates the application: all routes, behind the gate. */
export function createApp(init: AppInit): ServerApp {
  const hono = new Hono<ServerEnvironment>();
  const { limits } = init;
  const app: ServerApp = {
    hono,
    routes: [],
    limits,
    budget: new BodyBudget(limits),
    answers: new AnswerBudget(limits),
    heavy: new HeavyWork(limits),
    storage: init.services.storage,
  };
  hono.use("*", finish(init));
  hono.use("*", admit(init, app.routes));
  const { services } = init;
  for (const mount of MOUNTS) mount(app, services);
  hono.notFound((context) => answerUnrouted(context, app.routes, init.studio));
  hono.onError((error, context) => {
    const response = problemResponse(error, context.get("requestId"));
    if (response.status >= 500 && !isDraining(error)) context.set("failure", error);
    return response;
  });
  return app;
}

const MOUNTS: readonly ((app: ServerApp, services: ServerServices) => void)[] = [
  mountAbout,
  mountSessions,
  mountEntries,
  mountTree,
  mountContext,
  mountEdits,
  mountCache,
  mountBlobs,
  mountBranches,
  mountCheckpoints,
  mountAnalytics,
  mountSearch,
  mountTransfer,
  mountRuns,
  mountUsers,
  mountPrograms,
  mountMcp,
];

/** Adds the headers of every answer, and writes its line to the log. */
function finish({ gate, logger }: AppInit): MiddlewareHandler<ServerEnvironment> {
  return async (context, next) => {
    const startMs = performance.now();
    const requestId = randomUUID();
    context.set("requestId", requestId);
    context.set("route", "none");
    await next();
    // The body of an answer to HEAD is never read, and a file or a stream would stay open for it. It is cancelled first, since
    // the adapter's answer has other headers after its body was accessed.
    if (context.req.method === "HEAD") await context.res.body?.cancel();
    const { headers, status } = context.res;
    for (const [name, value] of Object.entries(HEADERS)) if (!headers.has(name)) headers.set(name, value);
    headers.set("x-request-id", requestId);
    const shared = gate.allowedOriginOf(context.req.raw);
    if (shared !== null) {
      headers.set("access-control-allow-origin", shared);
      headers.set("access-control-expose-headers", "location, retry-after, x-request-id, x-skein-budget, x-skein-run");
      headers.set("cross-origin-resource-policy", "cross-origin");
      headers.append("vary", "origin");
    }
    if (logger === null) return;
    const failure: unknown = context.get("failure");
    const durationMs = performance.now() - startMs;
    const { method } = context.req;
    const line = { requestId, method, route: context.get("route"), status, durationMs };
    logger(failure === undefined ? { level: "info", ...line } : { level: "error", ...line, error: describe(failure) });
  };
}

/** Checks origin, credentials and rate limit of every request. */
function admit({ gate }: AppInit, routes: readonly Route[]): MiddlewareHandler<ServerEnvironment> {
  return async (context, next) => {
    const request = context.req.raw;
    const { path } = context.req;
    gate.checkOrigin(request, path);
    if (request.method === "OPTIONS" && gate.allowedOriginOf(request) !== null) return preflight();
    const address = addressOf(context);
    const open = routes.some((route) => route.open === true && route.path === path);
    if (isGuarded(path) && !open) context.set("admission", await gate.admit(request, address));
    else gate.admitAnyone(address, open ? path : "");
    return next();
  };
}

function preflight(): Response {
  return new Response(null, {
    status: 204,
    headers: {
      "access-control-allow-methods": "GET, POST, PUT, PATCH, DELETE",
      "access-control-allow-headers": "authorization, content-type, last-event-id",
      "access-control-max-age": "600",
    },
  });
}

/** Answers a request that matches no route: another method's path (405), a file of the studio, or 404. */
async function answerUnrouted(
  context: ServerContext,
  routes: readonly Route[],
  studio: StudioFiles,
): Promise<Response> {
  const { method, path } = context.req;
  const segments = path.split("/");
  const allowed = routes.filter((route) => matches(route.path, segments)).map((route) => route.method.toUpperCase());
  if (allowed.length > 0) {
    const allow = [...new Set(allowed.includes("GET") ? ["HEAD", ...allowed] : allowed)].sort().join(", ");
    throw new HttpError("METHOD_NOT_ALLOWED", `This path accepts ${allow}, not ${method}.`, { headers: { allow } });
  }
  const page = isGuarded(path) || !["GET", "HEAD"].includes(method) ? null : await studio.find(path);
  if (page === null) throw new HttpError("ROUTE_NOT_FOUND", "No such path; /openapi.json lists all routes.");
  return page;
}

function matches(pattern: string, segments: readonly string[]): boolean {
  const names = pattern.split("/");
  return names.length === segments.length && names.every((name, i) => name.startsWith(":") || name === segments[i]);
}

function addressOf(context: ServerContext): string {
  const { incoming } = (context.env ?? {}) as { incoming?: { socket?: { remoteAddress?: string } } };
  return incoming?.socket?.remoteAddress ?? "unknown";
}

/** A refusal during shutdown is not a failure of the server. */
function isDraining(error: unknown): boolean {
  return error instanceof HttpError && error.code === "DRAINING";
}

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
