import { z } from "zod";
import type { EntryDraft } from "../../../session/log/entry.ts";
import { SessionNotFoundError } from "../../../session/errors.ts";
import { NAME_CHARACTERS_MAX } from "../../../session/limits.ts";
import type { SessionHead } from "../../../session/log/fold.ts";
import { programOf } from "../../../interop/formats/program-of.ts";
import type { SessionManager } from "../../../lifecycle/session-manager.ts";
import type { SessionPage, SessionQuery } from "../../../session/store.ts";
import { encodeSegment } from "../../path-segment.ts";
import type { NewSession, SessionPatch } from "../../wire.ts";
import { WHOLE_CHARACTERS_MAX } from "./answer-bytes.ts";
import { HttpError } from "../http-error.ts";
import { answer, noContent, route, type ServerApp } from "../route.ts";
import { id, jsonObject, limit, list, named, queryFlag, queryList } from "../schema.ts";
import type { Caller, ServerServices } from "../server-services.ts";
import { listedViews, openTree, readView } from "./session-access.ts";
import {
  emptyRequest,
  program,
  reasonRequest,
  sessionPage,
  sessionState,
  sessionView,
  status,
} from "./wire-schemas.ts";

const VARIABLES_MAX = 10_000;
const PAGE_DEFAULT = 100;
/** How many pages a filter by program reads at most for one of its own. */
const PAGES_READ_MAX = 20;
const name = z.string().max(NAME_CHARACTERS_MAX);

const newSession = named<NewSession>(
  "NewSession",
  z.strictObject({
    userId: id.optional(),
    name: name.optional(),
    cwd: z.string().min(1).optional(),
    metadata: jsonObject.optional(),
    systemPrompt: z.string().optional(),
  }),
);

const sessionPatch = named<SessionPatch>(
  "SessionPatch",
  z.strictObject({
    name: name.optional(),
    variables: z
      .strictObject({ set: jsonObject.optional(), unset: list(z.string(), VARIABLES_MAX).optional() })
      .optional(),
  }),
);

const one = { 200: { description: "The session.", schema: sessionView } };

/** Adds the routes that create, list, read, change and end sessions. */
export function mountSessions(app: ServerApp, services: ServerServices): void {
  mountListing(app, services);
  mountOne(app, services);
  mountStatus(app, services);
}

function mountListing(app: ServerApp, services: ServerServices): void {
  const { manager } = services;
  route(app, {
    method: "get",
    path: "/api/sessions",
    operationId: "listSessions",
    summary: "A page of sessions, those with the latest message first.",
    query: z.strictObject({
      userId: id.optional(),
      cwd: z.string().min(1).optional(),
      status: queryList(status).optional(),
      parentId: id.optional(),
      runs: z.enum(["requested", "running", "asking", "interrupted"]).optional(),
      deleted: queryFlag.optional(),
      program: program.optional(),
      limit: limit.optional(),
      cursor: z.string().optional(),
    }),
    answers: { 200: { description: "The page.", schema: sessionPage } },
    async handle({ query: { program: wanted, ...query }, as }) {
      const { items, next } = await listPage(manager, query as SessionQuery, { as, program: wanted });
      return answer({ items: await listedViews(services, items), next });
    },
  });
  route(app, {
    method: "post",
    path: "/api/sessions",
    operationId: "createSession",
    summary: "Creates a session, for the caller unless an administrator names another user.",
    body: newSession,
    answers: { 201: { description: "The new session.", schema: sessionView } },
    async handle({ body, caller, as }) {
      const { name: called, userId = caller.userId, ...rest } = body;
      if (userId !== caller.userId && !caller.admin) {
        throw new HttpError("FORBIDDEN", "Only an administrator can create a session for another user.");
      }
      await services.storage.addSession(userId);
      const { sessionId } = await manager.create({ ...rest, userId }, as);
      if (called !== undefined) await (await openTree(services, sessionId, caller)).setName(called);
      const headers = { location: `/api/sessions/${encodeSegment(sessionId)}` };
      return answer(await readView(services, sessionId, caller), { status: 201, headers });
    },
  });
}

/** A page of sessions. No index holds the program, so its filter reads a limited number of pages, and may return fewer sessions. */
async function listPage(
  manager: SessionManager,
  query: SessionQuery,
  { as, program: wanted }: { readonly as: { readonly actor: Caller }; readonly program: string | undefined },
): Promise<Pick<SessionPage, "items" | "next">> {
  if (wanted === undefined) return manager.list(query, as);
  const { limit: most = PAGE_DEFAULT, cursor } = query;
  const items: SessionHead[] = [];
  let next = cursor ?? null;
  for (let pages = 0; pages < PAGES_READ_MAX && items.length < most; pages++) {
    const position = next === null ? {} : { cursor: next };
    const page = await manager.list({ ...query, ...position, limit: most - items.length }, as);
    items.push(...page.items.filter((head) => programOf(head) === wanted));
    next = page.next;
    if (next === null) break;
  }
  return { items, next };
}

function mountOne(app: ServerApp, services: ServerServices): void {
  const { manager, store } = services;
  route(app, {
    method: "get",
    path: "/api/sessions/:id",
    operationId: "getSession",
    summary: "A session's head.",
    answers: one,
    handle: async ({ param, caller }) => answer(await readView(services, param("id"), caller)),
  });
  route(app, {
    method: "get",
    path: "/api/sessions/:id/state",
    operationId: "getState",
    summary: "The state of a session at its leaf; without turns, the cost does not depend on the session's length.",
    query: z.strictObject({ turns: queryFlag.optional() }),
    answers: { 200: { description: "The state.", schema: sessionState } },
    async handle({ param, query, as }) {
      const state = await manager.getState(param("id"), {
        ...as,
        turns: query.turns ?? true,
        charactersMax: WHOLE_CHARACTERS_MAX,
      });
      if (state === null) throw new SessionNotFoundError(param("id"));
      return answer(state);
    },
  });
  route(app, {
    method: "patch",
    path: "/api/sessions/:id",
    operationId: "changeSession",
    summary: "Changes the name of a session, and sets and removes variables at its leaf.",
    body: sessionPatch,
    answers: one,
    async handle({ param, body, caller }) {
      const tree = await openTree(services, param("id"), caller);
      const drafts = patchDrafts(body);
      if (drafts.length > 0) await tree.appendAll(drafts);
      return answer(await readView(services, tree.id, caller));
    },
  });
  route(app, {
    method: "delete",
    path: "/api/sessions/:id",
    operationId: "deleteSession",
    summary: "Deletes a session with its checkpoints; the session can be undeleted until it is purged.",
    answers: { 204: { description: "The session is deleted." } },
    async handle({ param, as }) {
      if (!(await manager.delete(param("id"), as))) throw new SessionNotFoundError(param("id"));
      return noContent();
    },
  });
  route(app, {
    method: "post",
    path: "/api/sessions/:id/undelete",
    operationId: "undeleteSession",
    frees: true,
    summary: "Undeletes a session, without its checkpoints.",
    body: emptyRequest,
    answers: one,
    async handle({ param, caller }) {
      const sessionId = param("id");
      const limits = { maxOpenPerUser: manager.config.maxSessionsPerUser };
      const found = (await isDeleted(services, sessionId, caller)) && (await store.undelete(sessionId, limits));
      if (!found) throw new SessionNotFoundError(sessionId);
      return answer(await readView(services, sessionId, caller));
    },
  });
}

function mountStatus(app: ServerApp, services: ServerServices): void {
  const { manager } = services;
  route(app, {
    method: "post",
    path: "/api/sessions/:id/suspend",
    operationId: "suspendSession",
    frees: true,
    summary: "Suspends an active session: it accepts no turns until it is resumed.",
    body: emptyRequest,
    answers: one,
    async handle({ param, caller, as }) {
      await manager.suspend(param("id"), { ...as, turns: false });
      return answer(await readView(services, param("id"), caller));
    },
  });
  route(app, {
    method: "post",
    path: "/api/sessions/:id/resume",
    operationId: "resumeSession",
    summary: "Makes a suspended session active again.",
    body: emptyRequest,
    answers: one,
    async handle({ param, caller, as }) {
      await manager.resume(param("id"), { ...as, turns: false });
      return answer(await readView(services, param("id"), caller));
    },
  });
  route(app, {
    method: "post",
    path: "/api/sessions/:id/close",
    operationId: "closeSession",
    frees: true,
    summary: "Closes a session for good.",
    body: reasonRequest,
    answers: one,
    async handle({ param, body, caller, as }) {
      await manager.close(param("id"), { ...as, ...body });
      return answer(await readView(services, param("id"), caller));
    },
  });
}

function patchDrafts({ name: called, variables }: SessionPatch): EntryDraft[] {
  const drafts: EntryDraft[] = [];
  if (called !== undefined) drafts.push({ type: "session_info", name: called });
  if (variables !== undefined)
    drafts.push({ type: "variables", set: variables.set ?? {}, unset: variables.unset ?? [] });
  return drafts;
}

/** Whether a deleted session is the caller's. Uses the search, because a deleted session's header cannot be read by id. */
async function isDeleted({ store }: ServerServices, sessionId: string, caller: Caller): Promise<boolean> {
  if (/[\s"]/.test(sessionId)) return false;
  const own = caller.admin ? {} : { userId: caller.userId };
  const hits = await store.search(`"${sessionId}"`, { ...own, deleted: true, limit: 1000 });
  return hits.some(({ head }) => head.header.id === sessionId);
}
