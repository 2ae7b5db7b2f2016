import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Context, Hono } from "hono";
import { z } from "zod";
import { decodeSegment } from "../path-segment.ts";
import { JSON_DEPTH_MAX } from "../../internal/json.ts";
import type { CallerRights } from "../caller-init.ts";
import { type Admission, checkRight } from "./gate/authenticator.ts";
import type { AnswerBudget } from "./answer-budget.ts";
import type { BodyBudget, BodyMeter } from "./body-budget.ts";
import type { CheckedLimits } from "./gate/check-server-limits.ts";
import type { HeavyRequest, HeavyWork } from "./heavy-work.ts";
import { HttpError, type RequestProblem } from "./http-error.ts";
import { type BodyReading, readJson, streamBody, streamRaw } from "./read-body.ts";
import type { UserStorage } from "../../workers/user-storage.ts";
import { checkBounded, refuse } from "./schema.ts";
import type { Caller } from "./server-services.ts";

const NO_QUERY: z.ZodType = z.strictObject({});
const PARAMETERS_MAX = 100;
/** Smaller chunks of a stream are sent together. */
const PIECE_BYTES = 64 * 1024;
/** The most JSON values in a file to import; for other bodies it is `bodyValuesMax`. */
const IMPORT_VALUES_MAX = 750_000;

/** The variables of a request's context. */
export interface ServerEnvironment {
  Variables: { admission: Admission; requestId: string; route: string; failure: unknown };
}

/** The context of a request. */
export type ServerContext = Context<ServerEnvironment>;

/** A documented answer of a route. */
export interface RouteAnswer {
  readonly description: string;
  /** The schema of its JSON; left out for an answer that is empty or not JSON. */
  readonly schema?: z.ZodType;
  /** The content type of an answer that is not JSON. */
  readonly contentType?: string;
}

/** One route: its request, its answers, and its handler. */
export interface Route<Query = unknown, Body = unknown> {
  readonly method: "get" | "post" | "put" | "patch" | "delete";
  /** `/api/sessions/:id/entries`; a `:name` is one segment. */
  readonly path: `/${string}`;
  readonly operationId: string;
  readonly summary: string;
  readonly query?: z.ZodType<Query>;
  readonly body?: z.ZodType<Body>;
  /** The content type of a body that is not JSON; the handler then reads it with `call.bytes`. */
  readonly bodyType?: string;
  /** Whether such a body is passed on as it arrives, and never held in memory as a whole; the handler limits its size. */
  readonly streamed?: boolean;
  /** Whether the body may contain pictures, and so be as large as `contentBytesMax`. */
  readonly content?: boolean;
  /** The answers by status; problems need not be listed, except for those of `problems`. */
  readonly answers: Readonly<Record<number, RouteAnswer>>;
  /** Problem statuses that are specific to this route. */
  readonly problems?: readonly number[];
  /** Whether callers without credentials may call it. */
  readonly open?: boolean;
  /**
   * Whether it ends or deletes something, or counts itself what it stores, so that a user whose storage is used up may still call
   * it.
   */
  readonly frees?: boolean;
  /** Whether it may read much data although it is not a `get`, and starts no background work. */
  readonly heavy?: boolean;
  /** The right that the caller needs. */
  readonly needs?: keyof CallerRights;
  handle(call: RouteCall<Query, Body>): Response | Promise<Response>;
}

/** A checked request to a route. */
export interface RouteCall<Query, Body> {
  /** A segment of the path by its name, decoded. */
  param(name: string): string;
  readonly query: Query;
  readonly body: Body;
  /** The bytes of a body that is not JSON, as they arrive. */
  bytes(): AsyncIterable<Uint8Array>;
  readonly caller: Caller;
  /** The authentication of the caller; undefined on an open route. */
  readonly admission: Admission;
  /** The caller, as an option for calls of the manager. */
  readonly as: { readonly actor: Caller };
  readonly request: Request;
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
  /** Counts what the request reads, for an answer that is produced while it is sent. */
  readonly work: HeavyRequest;
}

/** The application that routes are added to, with what they share. */
export interface ServerApp {
  readonly hono: Hono<ServerEnvironment>;
  readonly routes: Route[];
  readonly limits: CheckedLimits;
  readonly budget: BodyBudget;
  readonly storage: UserStorage;
  readonly answers: AnswerBudget;
  readonly heavy: HeavyWork;
}

/** Adds a route to the application and to its OpenAPI document. */
export function route<Query, Body>(app: ServerApp, added: Route<Query, Body>): void {
  for (const schema of [added.query, added.body]) if (schema !== undefined) checkBounded(schema, added.operationId);
  app.routes.push(added as unknown as Route);
  app.hono.on(added.method.toUpperCase(), added.path, async (context) => {
    context.set("route", added.path);
    const { raw: request, url } = context.req;
    const admission = context.get("admission");
    if (added.needs !== undefined) checkRight(admission.caller, added.needs);
    const params = paramsOf(added.path, url);
    const query = checkPart(added.query ?? NO_QUERY, queryOf(url), "query") as Query;
    const caller = admission?.caller;
    const { signal } = request;
    const known = { param: (name: string) => params.get(name) ?? "", query, caller, admission, as: { actor: caller } };
    // Callers without credentials get no large answers.
    if (caller !== undefined) app.answers.check(caller.userId);
    const work = app.heavy.open(caller?.userId ?? "", signal);
    // Of several pipelined requests of a connection, only the first one's signal reports that it is closed.
    const forget = whenClosed(context, () => work.leave());
    const handled = async (): Promise<Response> => {
      const call = { ...known, request, signal, work };
      if (addsBytes(added)) {
        await app.storage.checkBytes(caller.userId, Number(request.headers.get("content-length") ?? 0));
      }
      if (added.body === undefined && added.bodyType === undefined) {
        return added.handle({ ...call, body: undefined as Body, bytes: noBytes });
      }
      if (added.streamed === true) {
        return added.handle({
          ...call,
          body: undefined as Body,
          bytes: () => streamRaw(request, app.limits.uploadBytesMax),
        });
      }
      // The body is read last, when the caller is known, and counts until the request is answered.
      using meter = app.budget.open(caller.userId);
      const reading = readingOf(app.limits, added as unknown as Route, meter);
      const body = added.body && (await readBody(request, reading, added as unknown as Route, app.limits));
      const answered = await added.handle({ ...call, body: body as Body, bytes: () => streamBody(request, reading) });
      if (addsBytes(added)) app.storage.addBytes(caller.userId, meter.bytes);
      return answered;
    };
    const isHeavy = added.method === "get" || added.heavy === true;
    try {
      const response = await (isHeavy ? work.run(handled) : handled());
      work.answered();
      keepUntilSent(app, context, response, work);
      return response;
    } catch (error) {
      work[Symbol.dispose]();
      throw error;
    } finally {
      forget();
    }
  });
}

/** Counts the bytes of an answer, and keeps its slot, until its client has received it. */
function keepUntilSent(app: ServerApp, context: ServerContext, response: Response, work: HeavyRequest): void {
  const { outgoing } = (context.env ?? {}) as { outgoing?: ServerResponse };
  const end = (): void => work[Symbol.dispose]();
  // Without a connection, the end of the sending is unknown; a stream releases its slot itself.
  if (outgoing === undefined && work.isStream) return;
  if (outgoing === undefined || outgoing.destroyed) {
    end();
    return;
  }
  const release = app.answers.hold(work.userId, sizes.get(response) ?? 0);
  let forget = (): void => {};
  const sent = (): void => {
    forget();
    end();
    release();
  };
  outgoing.once("close", sent);
  // The connection may already be closed, and then `sent` is called before `whenClosed` returns.
  forget = whenClosed(context, sent);
  work.onTaken = () => outgoing.destroy();
}

/** Tasks to run when a connection is closed: one listener for each connection, however many requests it has. */
const closing = new WeakMap<Socket, Set<() => void>>();

/** Runs a task when the connection of a request is closed, unless the returned function is called before. */
function whenClosed(context: ServerContext, task: () => void): () => void {
  const { incoming } = (context.env ?? {}) as { incoming?: { readonly socket?: Socket } };
  const socket = incoming?.socket;
  if (socket === undefined) return () => {};
  const tasks = closing.get(socket) ?? new Set();
  if (!closing.has(socket)) {
    closing.set(socket, tasks);
    socket.once("close", () => {
      for (const each of tasks) each();
    });
  }
  tasks.add(task);
  if (socket.destroyed) task();
  return () => void tasks.delete(task);
}

/** The length of answers that were produced as a whole. */
const sizes = new WeakMap<Response, number>();

function sized(text: string, init: ResponseInit): Response {
  const response = new Response(text, init);
  sizes.set(response, text.length);
  return response;
}

/** Whether requests to a route add to a user's stored bytes. */
function addsBytes({ method, frees = false, open = false }: Pick<Route, "method" | "frees" | "open">): boolean {
  return method !== "get" && method !== "delete" && !frees && !open;
}

async function readBody(request: Request, reading: BodyReading, { body, content }: Route, limits: CheckedLimits) {
  const given = await readJson(request, reading);
  if (content === true) checkParts(given, limits.contentPartsMax);
  return checkPart(body as z.ZodType, given, "body");
}

function readingOf(limits: CheckedLimits, { bodyType, content }: Route, meter: BodyMeter): BodyReading {
  const depthMax = JSON_DEPTH_MAX;
  if (bodyType !== undefined) return { bytesMax: limits.importBytesMax, valuesMax: IMPORT_VALUES_MAX, depthMax, meter };
  const bytesMax = content === true ? limits.contentBytesMax : limits.bodyBytesMax;
  return { bytesMax, valuesMax: limits.bodyValuesMax, depthMax, meter };
}

async function* noBytes(): AsyncGenerator<Uint8Array> {}

/** A JSON answer. */
export function answer(
  value: unknown,
  {
    status = 200,
    headers = {},
  }: { readonly status?: number; readonly headers?: Readonly<Record<string, string>> } = {},
): Response {
  return sized(JSON.stringify(value), { status, headers: { ...headers, "content-type": "application/json" } });
}

/** An answer whose text is JSON. */
export function answerJson(text: string): Response {
  return sized(text, { headers: { "content-type": "application/json" } });
}

/** An answer with the given text, and the status and headers of another answer; its size is counted. */
export function answerText(text: string, { status, headers }: Pick<Response, "status" | "headers">): Response {
  return text === "" ? new Response(null, { status, headers }) : sized(text, { status, headers });
}

/**
 * An answer that is produced while its client reads it. An error before the first chunk is answered with a problem document; a
 * later error breaks the connection.
 */
export async function answerStream(
  work: HeavyRequest,
  pieces: AsyncIterable<string | Uint8Array>,
  headers: Readonly<Record<string, string>>,
): Promise<Response> {
  work.isStream = true;
  const iterator = pieces[Symbol.asyncIterator]();
  let next: IteratorResult<string | Uint8Array> | null = await iterator.next();
  const source = {
    pull: (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> =>
      work.run(async () => {
        const parts: Uint8Array[] = [];
        let bytes = 0;
        for (;;) {
          const { done, value } = next ?? (await iterator.next());
          // Released here, so that the chunk is not held while the client reads it.
          next = null;
          if (done === true) break;
          const part = typeof value === "string" ? Buffer.from(value) : value;
          parts.push(part);
          bytes += part.length;
          if (bytes >= PIECE_BYTES) return controller.enqueue(parts.length === 1 ? part : Buffer.concat(parts));
        }
        if (bytes > 0) controller.enqueue(Buffer.concat(parts));
        controller.close();
        work[Symbol.dispose]();
      }),
    async cancel(): Promise<void> {
      work[Symbol.dispose]();
      await iterator.return?.();
    },
  };
  return new Response(new ReadableStream(source, { highWaterMark: 0 }), { headers });
}

/** An answer without a body. */
export function noContent(): Response {
  return new Response(null, { status: 204 });
}

/** Documents the answer of a route that is a stream of Server-Sent Events. */
export function eventStream(data: string, schema: z.ZodType): Readonly<Record<200, RouteAnswer>> {
  const description = `Server-Sent Events; the data of each is ${data}.`;
  return { 200: { description, contentType: "text/event-stream", schema } };
}

/** The segments of a path that the pattern names. Hono decodes invalid percent-encoding in part; this refuses it. */
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

/** Parses a query; a name that occurs several times has a list. */
function queryOf(url: string): Readonly<Record<string, string | readonly string[]>> {
  const query: Record<string, string | string[]> = Object.create(null) as Record<string, string>;
  const from = url.indexOf("?");
  if (from < 0) return query;
  let count = 0;
  for (const [name, value] of new URLSearchParams(url.slice(from + 1))) {
    if (++count > PARAMETERS_MAX) {
      throw new HttpError("INVALID_REQUEST", `The query has more than ${PARAMETERS_MAX} parameters.`);
    }
    const earlier = query[name];
    if (Array.isArray(earlier)) earlier.push(value);
    else query[name] = earlier === undefined ? value : [earlier, value];
  }
  return query;
}

const PROBLEMS_MAX = 10;
const PATH_CHARACTERS_MAX = 200;
const MESSAGE_CHARACTERS_MAX = 300;

/** Checks a part of a request by its schema. @throws {HttpError} `INVALID_REQUEST` that names the first ten problems. */
function checkPart(schema: z.ZodType, value: unknown, part: "query" | "body"): unknown {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const problems = result.error.issues.slice(0, PROBLEMS_MAX).map((issue) => problemOf(issue, part));
  const where = problems.map(({ path }) => path).join(", ");
  throw new HttpError("INVALID_REQUEST", `The request is not valid at ${where}.`, { problems });
}

/**
 * Checks the number of parts in the messages of a request, before they are checked by a schema.
 *
 * @throws {HttpError} `INVALID_REQUEST` for a message with too many parts.
 */
function checkParts(body: unknown, partsMax: number): void {
  const { content, input, entries, messages } = objectOf(body);
  checkCount(content, "body.content", partsMax);
  checkCount(input, "body.input", partsMax);
  for (const [i, entry] of (Array.isArray(entries) ? entries : []).entries()) {
    const { message, content: said } = objectOf(entry);
    checkCount(objectOf(message).content, `body.entries.${i}.message.content`, partsMax);
    checkCount(said, `body.entries.${i}.content`, partsMax);
  }
  for (const [i, message] of (Array.isArray(messages) ? messages : []).entries()) {
    const { role, content: said, parts } = objectOf(message);
    // Front ends send the model's messages too, which the server ignores.
    if (role === "user") checkCount(parts ?? said, `body.messages.${i}`, partsMax);
  }
}

function checkCount(content: unknown, path: string, partsMax: number): void {
  if (Array.isArray(content) && content.length > partsMax) refuse(path, `This has more than ${partsMax} parts.`);
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function problemOf(issue: z.core.$ZodIssue, part: string): RequestProblem {
  // For a union, a list that is too long is the most useful of the reported problems.
  const tooLong =
    issue.code === "invalid_union" ? issue.errors.flat().find(({ code }) => code === "too_big") : undefined;
  return {
    path: cut([part, ...issue.path.map(String)].join("."), PATH_CHARACTERS_MAX),
    message: cut((tooLong ?? issue).message, MESSAGE_CHARACTERS_MAX),
  };
}

function cut(text: string, charactersMax: number): string {
  return text.length > charactersMax ? `${text.slice(0, charactersMax)}…` : text;
}
