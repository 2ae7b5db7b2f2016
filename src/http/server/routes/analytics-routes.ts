import { z } from "zod";
import { type CallQuery, callAnalytics } from "../../../lifecycle/call-analytics.ts";
import { computeAnalytics } from "../../../session/state/analytics.ts";
import { type CallAnalytics, CallSamples } from "../../../session/state/call-samples.ts";
import { SessionNotFoundError, SessionCapacityError } from "../../../session/errors.ts";
import { edges, lineageUsage } from "../../../session/lineage/lineage.ts";
import { toDot, toMermaid } from "../../../session/lineage/lineage-diagram.ts";
import { toJsonl } from "../../../session/lineage/lineage-export.ts";
import type { AggregateQuery, AggregateRow } from "../../../session/store.ts";
import { costOf, priceOf } from "../../../models/prices.ts";
import { costOfImported } from "../../../models/shown-cost.ts";
import type { SessionState } from "../../../session/state/state.ts";
import type {
  AnalyticsRowView,
  AnalyticsView,
  ImportedFigures,
  LineageNodeView,
  LineageView,
  SessionAnalyticsView,
} from "../../wire.ts";
import { WHOLE_CHARACTERS_MAX } from "./answer-bytes.ts";
import { answer, route, type ServerApp } from "../route.ts";
import { id, named, queryList } from "../schema.ts";
import type { ServerServices, Caller } from "../server-services.ts";
import { visibleHead } from "./session-access.ts";
import { lineage, status, usage } from "./wire-schemas.ts";
import type { SessionHead } from "../../../session/log/fold.ts";
import type { Lineage } from "../../../session/log/header.ts";
import type { Usage } from "../../../session/usage.ts";
import { ownSpending } from "../../../tree/own-spending.ts";

const text = z.string();
const amount = z.number().min(0);

const sessionAnalytics = named<SessionAnalyticsView>(
  "SessionAnalytics",
  z.object({
    sessionId: text,
    totalTurns: amount,
    totalTokens: amount,
    totalCost: amount,
    durationSeconds: amount,
    agentsUsed: z.array(text),
    toolsInvoked: z.array(text),
    avgResponseTimeMs: amount,
    modelsUsed: z.array(text),
    shownCost: amount.nullable(),
    costComputed: z.boolean(),
  }),
);

const imported = named<ImportedFigures>(
  "ImportedSums",
  z.object({ messages: amount, toolCalls: amount, usage, cost: amount.nullable(), costComputed: z.boolean() }),
);

const aggregateRow = named<AnalyticsRowView>(
  "AnalyticsRow",
  z.object({
    day: text.optional(),
    model: text.nullable().optional(),
    user: text.nullable().optional(),
    sessions: amount,
    messages: amount,
    toolCalls: amount,
    usage,
    cost: amount,
    imported: imported.optional(),
  }),
);
const analyticsView = named<AnalyticsView>("Analytics", z.object({ rows: z.array(aggregateRow) }));

const measured = { answers: amount, medianMs: amount, p95Ms: amount };
const callSums = named<CallAnalytics>(
  "CallAnalytics",
  z.object({
    sessions: amount,
    complete: z.boolean(),
    latency: z.object(measured).nullable(),
    byDay: z.array(z.object({ day: text, ...measured })),
    byModel: z.array(z.object({ model: text.nullable(), ...measured })),
    byUser: z.array(z.object({ user: text.nullable(), ...measured })),
    tools: z.array(z.object({ tool: text, calls: amount, failed: amount })),
  }),
);
const period = { userId: id.optional(), from: text.optional(), to: text.optional() };

const lineageNode = named<LineageNodeView>(
  "LineageNode",
  z.object({
    id: text,
    name: text.nullable(),
    branchName: text.nullable(),
    lineage: lineage.nullable(),
    status: status.nullable(),
    usage: usage.nullable(),
    cost: amount.nullable(),
    createdAt: text.nullable(),
  }),
);

const lineageView = named<LineageView>(
  "LineageGraph",
  z.object({
    nodes: z.array(lineageNode),
    edges: z.array(z.object({ parent: text, child: text })),
    usage,
    cost: amount,
  }),
);

/** Adds the routes for totals over sessions and for their lineage. */
export function mountAnalytics(app: ServerApp, services: ServerServices): void {
  mountSums(app, services);
  mountCalls(app, services);
  mountLineage(app, services);
}

function mountSums(app: ServerApp, services: ServerServices): void {
  const { manager, store } = services;
  route(app, {
    method: "get",
    path: "/api/sessions/:id/analytics",
    operationId: "getSessionAnalytics",
    summary: "The totals of a session's turns.",
    answers: { 200: { description: "The totals.", schema: sessionAnalytics } },
    async handle({ param, as }) {
      const state = await manager.getState(param("id"), { ...as, charactersMax: WHOLE_CHARACTERS_MAX });
      if (state === null) throw new SessionNotFoundError(param("id"));
      return answer({ ...computeAnalytics(state), ...shownCostOf(state) });
    },
  });
  route(app, {
    method: "get",
    path: "/api/analytics",
    operationId: "getAnalytics",
    summary: "Totals over many sessions; over all users only for an administrator.",
    query: z.strictObject({ ...period, groupBy: queryList(z.enum(["day", "model", "user"])).optional() }),
    answers: { 200: { description: "The totals.", schema: analyticsView } },
    async handle({ query, caller }) {
      const { userId, groupBy = [], ...times } = query;
      if (!caller.admin && userId !== undefined && userId !== caller.userId) return answer({ rows: [] });
      const whose = caller.admin ? userId : caller.userId;
      const asked = { ...times, groupBy, ...(whose === undefined ? {} : { userId: whose }) };
      const rows = await store.aggregate(asked as AggregateQuery);
      return answer({ rows: rows.map(rowViewOf) });
    },
  });
}

function rowViewOf({ imported: sums, ...row }: AggregateRow): AnalyticsRowView {
  if (sums === undefined) return row;
  const { messages, toolCalls, usage: spent } = sums;
  const shown = costOfImported(sums);
  const cost = { cost: shown?.cost ?? null, costComputed: shown?.computed ?? false };
  return { ...row, imported: { messages, toolCalls, usage: spent, ...cost } };
}

function shownCostOf({ turns }: SessionState): Pick<SessionAnalyticsView, "shownCost" | "costComputed"> {
  const shown = turns.flatMap(({ provider, model, usage: spent, cost }) => {
    if (cost > 0) return { cost, computed: false };
    const computed = provider && model && spent ? costOf(spent, priceOf(provider, model)) : undefined;
    return computed === undefined ? [] : { cost: computed, computed: computed > 0 };
  });
  if (shown.length === 0) return { shownCost: null, costComputed: false };
  return {
    shownCost: shown.reduce((sum, { cost }) => sum + cost, 0),
    costComputed: shown.some(({ computed }) => computed),
  };
}

function mountCalls(app: ServerApp, { store }: ServerServices): void {
  route(app, {
    method: "get",
    path: "/api/analytics/calls",
    operationId: "getCallAnalytics",
    summary: "The latency of answers and the tools that were called, in the latest sessions that the caller may see.",
    query: z.strictObject(period),
    answers: { 200: { description: "The latencies and counts.", schema: callSums } },
    async handle({ query, caller }) {
      const { userId, ...times } = query;
      if (!caller.admin && userId !== undefined && userId !== caller.userId) return answer(new CallSamples().sum(NONE));
      const whose = caller.admin ? userId : caller.userId;
      const asked = { ...times, ...(whose === undefined ? {} : { userId: whose }) };
      return answer(await callAnalytics(store, asked as CallQuery));
    },
  });
}

const NONE = { sessions: 0, complete: true } as const;

function mountLineage(app: ServerApp, services: ServerServices): void {
  route(app, {
    method: "get",
    path: "/api/sessions/:id/lineage",
    operationId: "readLineage",
    summary: "The ancestors and descendants of a session, as data or as a diagram.",
    query: z.strictObject({ format: z.enum(["mermaid", "dot", "jsonl"]).optional() }),
    answers: { 200: { description: "The lineage; as text if a format is given.", schema: lineageView } },
    async handle({ param, query, caller }) {
      const sessions = await readLineage(services, await visibleHead(services, param("id"), caller), caller);
      if (query.format === undefined) return answer(lineageViewOf(sessions, param("id")));
      const write = { mermaid: toMermaid, dot: toDot, jsonl: toJsonl }[query.format];
      return new Response(write(sessions), { headers: { "content-type": "text/plain; charset=utf-8" } });
    },
  });
}

function lineageViewOf(sessions: readonly LineageSession[], sessionId: string): LineageView {
  const arrows = edges(sessions);
  const known = new Set(sessions.map((session) => session.id));
  const missing = new Set(arrows.map(({ parent }) => parent).filter((parent) => !known.has(parent)));
  return {
    nodes: [...sessions.map(nodeOf), ...[...missing].map(missingNode)],
    edges: arrows,
    ...lineageUsage(sessions, sessionId),
  };
}

function nodeOf({ id: sessionId, lineage: from, head, usage: spent, cost }: LineageSession): LineageNodeView {
  const { name, status: now, header } = head;
  const { createdAt, forkedFrom } = header;
  const branchName = forkedFrom?.branchName ?? null;
  return { id: sessionId, name, branchName, lineage: from, status: now, usage: spent, cost, createdAt };
}

function missingNode(sessionId: string): LineageNodeView {
  const nothing = { name: null, branchName: null, lineage: null, status: null };
  return { id: sessionId, ...nothing, usage: null, cost: null, createdAt: null };
}

/** The most sessions in one lineage. */
const SESSIONS_MAX = 2000;

/** A session of a lineage, with its own spending: what a fork inherited counts in the session that spent it. */
interface LineageSession {
  readonly id: string;
  readonly lineage: Lineage;
  readonly head: SessionHead;
  readonly transcript: { readonly length: number };
  readonly usage: Usage;
  readonly cost: number;
}

/**
 * The ancestors and descendants of a session, and the other ancestors of these descendants, as far as the caller may see them. A
 * parent that is hidden from the caller or deleted appears only as the id in its children.
 *
 * @throws {SessionCapacityError} if there are too many.
 */
async function readLineage(
  { manager, store }: ServerServices,
  start: SessionHead,
  caller: Caller,
): Promise<LineageSession[]> {
  const as = { actor: caller };
  const found = new Map([[start.header.id, start]]);
  const add = (head: SessionHead): void => {
    if (found.size >= SESSIONS_MAX) throw new SessionCapacityError("sessions in one lineage", SESSIONS_MAX);
    found.set(head.header.id, head);
  };
  // A `Map` also iterates entries that are added during the iteration, so it serves as a queue.
  const addAncestors = async (): Promise<void> => {
    for (const { header } of found.values()) {
      for (const parentId of header.lineage.parents) {
        const parent = found.has(parentId) ? null : await manager.head(parentId, as);
        if (parent !== null) add(parent);
      }
    }
  };
  // First the ancestors, then all descendants, then the ancestors of those: a descendant may have other parents.
  await addAncestors();
  for (const { header } of found.values()) {
    let cursor: string | null = null;
    do {
      const page = await manager.list({ parentId: header.id, limit: 1000, ...(cursor === null ? {} : { cursor }) }, as);
      for (const child of page.items) if (!found.has(child.header.id)) add(child);
      cursor = page.next;
    } while (cursor !== null);
  }
  await addAncestors();
  const forked = new Set([...found.values()].map(({ header }) => header.forkedFrom?.sessionId));
  const sessions: LineageSession[] = [];
  for (const head of found.values()) {
    const { header, path } = head;
    const { usage, cost } = (await ownSpending(store, head, { forked: forked.has(header.id) })) ?? head;
    sessions.push({
      id: header.id,
      lineage: header.lineage,
      head,
      transcript: { length: path.turnCount },
      usage,
      cost,
    });
  }
  return sessions;
}
