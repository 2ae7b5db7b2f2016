import { checkFirstKept } from "../../../tree/session-tree.ts";
import { z } from "zod";
import { nextSlice } from "../../../internal/long-work.ts";
import { type Entry, type EntryDraft, entryCharacters, isNode } from "../../../session/log/entry.ts";
import { checkDistinctCalls } from "../../../session/log/distinct-calls.ts";
import { SessionError, show, UnknownEntryError } from "../../../session/errors.ts";
import { APPEND_ENTRIES_MAX } from "../../../session/limits.ts";
import type { AppendOptions } from "../../../session/store.ts";
import type { AppendView, NewEntries, NewTurn } from "../../wire.ts";
import { readEntriesPage } from "./answer-bytes.ts";
import { HttpError } from "../http-error.ts";
import { answer, answerJson, route, type ServerApp } from "../route.ts";
import {
  content,
  id,
  jsonObject,
  limit,
  list,
  type Loose,
  named,
  queryFlag,
  queryInteger,
  toolCall,
} from "../schema.ts";
import type { Caller, ServerServices } from "../server-services.ts";
import { openTree, readView, visibleHead } from "./session-access.ts";
import { entry, entryPage } from "./entry-schemas.ts";
import { sessionView } from "./wire-schemas.ts";

const PAGE_DEFAULT = 100;
const TOOL_CALLS_MAX = 1000;
/** A larger entry is read only with a slot of `HeavyWork`. */
const ENTRY_CHARACTERS_LIGHT = 256 * 1024;

/** The facts that clients may append. Other facts are written by runs and by the manager, or have a route that checks them. */
const FACTS: ReadonlySet<string> = new Set<Entry["type"]>(["leaf", "label", "session_info"]);
/** The nodes that only runs and erasures append: what a model was sent, and that words were erased. */
const INTERNAL_NODES: ReadonlySet<string> = new Set<Entry["type"]>(["setup", "erased"]);

const newEntries = named<NewEntries>(
  "NewEntries",
  z.strictObject({
    entries: list(
      z.looseObject({ type: z.string(), id: id.optional(), timestamp: z.string().optional() }),
      APPEND_ENTRIES_MAX,
      1,
    ),
    expectedVersion: z.int().min(0).optional(),
    onto: id.nullable().optional(),
  }) as unknown as z.ZodType<Loose<NewEntries>>,
);

const newTurn = named<NewTurn>(
  "NewTurn",
  z.strictObject({
    turnId: id.optional(),
    role: z.enum(["system", "user", "assistant", "tool"]),
    content: content.nullable(),
    toolCalls: list(toolCall, TOOL_CALLS_MAX).optional(),
    toolCallId: z.string().optional(),
    toolName: z.string().optional(),
    isError: z.boolean().optional(),
    agent: z.string().optional(),
    metadata: jsonObject.optional(),
    tokensUsed: z.number().min(0).optional(),
    cost: z.number().min(0).optional(),
    model: z.string().optional(),
    provider: z.string().optional(),
  }),
);

const appended = named<AppendView>("AppendedEntries", z.object({ version: z.int(), entries: z.array(entry) }));

/** Adds the routes that read and append entries. */
export function mountEntries(app: ServerApp, services: ServerServices): void {
  mountReading(app, services);
  mountAppending(app, services);
}

function mountReading(app: ServerApp, services: ServerServices): void {
  const { store } = services;
  route(app, {
    method: "get",
    path: "/api/sessions/:id/entries",
    operationId: "listEntries",
    summary: "A page of the log; pass `next` as `after`, or as `before` if `reverse` is set.",
    query: z.strictObject({
      after: queryInteger(-1).optional(),
      before: queryInteger(0).optional(),
      limit: limit.optional(),
      reverse: queryFlag.optional(),
    }),
    answers: { 200: { description: "The page.", schema: entryPage } },
    async handle({ param, query, caller }) {
      const { header } = await visibleHead(services, param("id"), caller);
      const { limit: most = PAGE_DEFAULT, after, before, reverse = false } = query;
      const range = { ...(after === undefined ? {} : { after }), ...(before === undefined ? {} : { before }), reverse };
      const { items, more } = await readEntriesPage(store, header.id, { ...range, limit: most });
      const last = more ? (JSON.parse(items.at(-1) as string) as Entry).seq : null;
      return answerJson(`{"items":[${items.join(",")}],"next":${last === null ? null : `"${last}"`}}`);
    },
  });
  route(app, {
    method: "get",
    path: "/api/sessions/:id/entries/:entryId",
    operationId: "getEntry",
    summary: "One entry.",
    answers: { 200: { description: "The entry.", schema: entry } },
    async handle({ param, caller, work }) {
      const { header } = await visibleHead(services, param("id"), caller);
      const read = async (): Promise<Entry> => {
        const found = await store.getEntry(header.id, param("entryId"));
        if (found === null) throw new UnknownEntryError(header.id, param("entryId"));
        return found;
      };
      if (entryCharacters(await read()) <= ENTRY_CHARACTERS_LIGHT) return answer(await read());
      // Read again after the wait, so that it is not held in memory meanwhile.
      await work.begin();
      await nextSlice();
      return answer(await read());
    },
  });
}

function mountAppending(app: ServerApp, services: ServerServices): void {
  route(app, {
    method: "post",
    path: "/api/sessions/:id/entries",
    operationId: "appendEntries",
    summary: "Appends entries atomically; idempotent by their ids.",
    body: newEntries,
    content: true,
    answers: { 201: { description: "The appended entries.", schema: appended } },
    async handle({ param, body, caller }) {
      for (const [i, draft] of body.entries.entries()) {
        checkAppendable(draft);
        checkSpending(draft as unknown as Spending, caller, `entries.${i}`);
        checkSpending((draft as { readonly message?: Spending }).message, caller, `entries.${i}.message`);
      }
      checkDistinctCalls(body.entries);
      const { expectedVersion, onto } = body;
      const options: AppendOptions = {
        ...(expectedVersion === undefined ? {} : { expectedVersion }),
        ...(onto === undefined ? {} : { onto }),
      };
      const tree = await openTree(services, param("id"), caller);
      // The author is always the caller; `by` in a draft is ignored.
      const drafts = body.entries.map(({ by: _by, ...draft }: EntryDraft): EntryDraft => draft);
      for (const draft of drafts) {
        // It may keep nothing, which it says by its own id, or begin with an entry of the same append.
        const isNew = (kept: string): boolean => drafts.some(({ id }) => id === kept);
        if (draft.type === "compaction" && !isNew(draft.firstKeptEntryId))
          await checkFirstKept(tree, draft.firstKeptEntryId, onto === undefined ? tree.leafId : onto);
      }
      const { version, entries } = await tree.appendAll(drafts, options);
      return answer({ version, entries }, { status: 201 });
    },
  });
  route(app, {
    method: "post",
    path: "/api/sessions/:id/turns",
    operationId: "addTurn",
    summary: "Adds a turn; idempotent by its turnId.",
    body: newTurn,
    content: true,
    answers: { 201: { description: "The session with the turn.", schema: sessionView } },
    async handle({ param, body, caller, as }) {
      checkSpending(body, caller, "the turn");
      await services.manager.addTurn(param("id"), body, as);
      return answer(await readView(services, param("id"), caller), { status: 201 });
    },
  });
}

function checkAppendable({ type }: EntryDraft): void {
  if ((isNode({ type }) && !INTERNAL_NODES.has(type)) || FACTS.has(type)) return;
  throw new SessionError("INVALID_ENTRY", `Clients cannot append entries of the type ${show(type)}.`);
}

/** The spending that a turn or a summary declares. */
interface Spending {
  readonly usage?: unknown;
  readonly cost?: unknown;
  readonly tokensUsed?: unknown;
}

/** @throws {HttpError} `FORBIDDEN`: spending comes from runs; other callers could falsify every total. */
function checkSpending(spending: Spending | null | undefined, { admin }: Caller, where: string): void {
  if (admin || typeof spending !== "object" || spending === null) return;
  for (const field of ["usage", "cost", "tokensUsed"] as const) {
    const value = spending[field];
    if (value === undefined || value === 0) continue;
    throw new HttpError("FORBIDDEN", `Only runs and administrators may set ${field}; leave it out of ${where}.`);
  }
}
