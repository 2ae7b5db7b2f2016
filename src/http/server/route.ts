import type { Context, Hono } from "hono";
import { z } from "zod";
import { decodeSegment } from "../path-segment.ts";
import type { CallerRights } from "../wire.ts";
import { HttpError } from "./http-error.ts";
import { readJson } from "./read-body.ts";
import { type Admission, checkRight } from "./admission.ts";
import type { Caller } from "./server-services.ts";

const NO_QUERY: z.ZodType = z.strictObject({});
const PROBLEMS_MAX = 20;

/** What the server keeps beside a request. */
export interface ServerEnvironment {
  Variables: { admission: Admission; requestId: string; route: string; failure: unknown };
}

/** The context of a request. */
export type ServerContext = Context<ServerEnvironment>;

/** An answer that a route may give. */
export interface RouteAnswer {
  readonly description: string;
  /** What its JSON is; left out for an answer that is empty or not JSON. */
  readonly schema?: z.ZodType;
  /** What it is if not JSON. */
  readonly contentType?: string;
}

/** One route: what it takes, what it answers, and what it does. */
export interface Route<Query = unknown, Body = unknown> {
  readonly method: "get" | "post" | "put" | "patch" | "delete";
  /** `/api/sessions/:id/entries`; a `:name` is one segment. */
  readonly path: `/${string}`;
  readonly operationId: string;
  readonly summary: string;
  readonly query?: z.ZodType<Query>;
  readonly body?: z.ZodType<Body>;
  /** What the body is if not JSON; the route then reads it itself, with `streamBody`. */
  readonly bodyType?: string;
  /** By status; problems need not be listed. */
  readonly answers: Readonly<Record<number, RouteAnswer>>;
  /** Whether whoever cannot say who they are may call it, too. */
  readonly open?: boolean;
  /** What the caller must have the right to. */
  readonly needs?: keyof CallerRights;
  handle(call: RouteCall<Query, Body>): Response | Promise<Response>;
}

/** A request to a route, checked. */
export interface RouteCall<Query, Body> {
  /** A segment of the path by its name, decoded. */
  param(name: string): string;
  readonly query: Query;
  readonly body: Body;
  readonly caller: Caller;
  /** What let the caller in; undefined on a route that is open. */
  readonly admission: Admission;
  /** The caller, as the manager takes it. */
  readonly as: { readonly actor: Caller };
  readonly request: Request;
  /** Aborts when the client is gone. */
  readonly signal: AbortSignal;
}

/** The application that routes are added to, and what it has so far. */
export interface ServerApp {
  readonly hono: Hono<ServerEnvironment>;
  readonly routes: Route[];
  readonly limits: { readonly bodyBytesMax: number };
}

/** Adds a route: to what is served, and to what is documented. */
export function route<Query, Body>(app: ServerApp, added: Route<Query, Body>): void {
  app.routes.push(added as unknown as Route);
  app.hono.on(added.method.toUpperCase(), added.path, async (context) => {
    context.set("route", added.path);
    const { raw: request, url } = context.req;
    const admission = context.get("admission");
    if (added.needs !== undefined) checkRight(admission.caller, added.needs);
    const params = paramsOf(added.path, url);
    const query = checkPart(added.query ?? NO_QUERY, queryOf(url), "query") as Query;
    const body = added.body && checkPart(added.body, await readJson(request, app.limits.bodyBytesMax), "body");
    const caller = admission?.caller;
    return added.handle({
      param: (name) => params.get(name) ?? "",
      query,
      body: body as Body,
      caller,
      admission,
      as: { actor: caller },
      request,
      signal: request.signal,
    });
  });
}

/** A JSON answer. */
export function answer(
  value: unknown,
  {
    status = 200,
    headers = {},
  }: { readonly status?: number; readonly headers?: Readonly<Record<string, string>> } = {},
): Response {
  return new Response(JSON.stringify(value), { status, headers: { ...headers, "content-type": "application/json" } });
}

/** An answer that is JSON already. */
export function answerJson(text: string): Response {
  return new Response(text, { headers: { "content-type": "application/json" } });
}

/** An answer without a body. */
export function noContent(): Response {
  return new Response(null, { status: 204 });
}

/** The segments of a path that the pattern names. Hono decodes what cannot be decoded as far as it goes; this refuses it. */
function paramsOf(pattern: string, url: string): ReadonlyMap<string, string> {
  const segments = (/^[^:/?#]+:\/\/[^/?#]*([^?#]*)/.exec(url)?.[1] ?? "").split("/");
  const named = pattern.split("/").flatMap((name, i): [string, string][] => {
    if (!name.startsWith(":")) return [];
    const value = decodeSegment(segments[i] ?? "");
    if (value === null) {
      throw new HttpError("INVALID_REQUEST", `The path is not percent-encoded UTF-8 at ${name.slice(1)}.`);
    }
    return [[name.slice(1), value]];
  });
  return new Map(named);
}

/** What a query says; a name that occurs several times has a list. */
function queryOf(url: string): Readonly<Record<string, string | readonly string[]>> {
  const query: Record<string, string | readonly string[]> = Object.create(null) as Record<string, string>;
  const from = url.indexOf("?");
  for (const [name, value] of from < 0 ? [] : new URLSearchParams(url.slice(from + 1))) {
    const earlier = query[name];
    query[name] = earlier === undefined ? value : [...[earlier].flat(), value];
  }
  return query;
}

function checkPart(schema: z.ZodType, value: unknown, part: "query" | "body"): unknown {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const problems = result.error.issues.slice(0, PROBLEMS_MAX).map(({ path, message }) => ({
    path: [part, ...path.map(String)].join("."),
    message,
  }));
  const where = problems.map(({ path }) => path).join(", ");
  throw new HttpError("INVALID_REQUEST", `The request is not valid at ${where}.`, { problems });
}
