import { z } from "zod";
import { type Entry, type EntryDraft, isNode } from "../../session/entry.ts";
import { SessionError, show, UnknownEntryError } from "../../session/errors.ts";
import { APPEND_ENTRIES_MAX } from "../../session/limits.ts";
import type { AppendOptions } from "../../session/store.ts";
import type { AppendView, NewEntries, NewTurn } from "../wire.ts";
import { answer, route, type ServerApp } from "./route.ts";
import { content, id, jsonObject, limit, type Loose, named, queryFlag, queryInteger, toolCall } from "./schema.ts";
import type { ServerServices } from "./server-services.ts";
import { openTree, readView, visibleHead } from "./session-access.ts";
import { entry, entryPage, sessionView } from "./wire-schemas.ts";

const PAGE_DEFAULT = 100;

/** The facts that anyone may append. The rest is written by runs and by the manager, or has a route that checks it first. */
const FACTS: ReadonlySet<string> = new Set<Entry["type"]>(["leaf", "label", "session_info"]);

const newEntries = named<NewEntries>(
  "NewEntries",
  z.strictObject({
    entries: z
      .array(z.looseObject({ type: z.string(), id: id.optional(), timestamp: z.string().optional() }))
      .min(1)
      .max(APPEND_ENTRIES_MAX),
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
    toolCalls: z.array(toolCall).optional(),
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

const appended = named<AppendView>("Appended", z.object({ version: z.int(), entries: z.array(entry) }));

/** Reading and appending entries. */
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
    summary: "A page of the log; `next` is what to give as `after`, or as `before` where the latest come first.",
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
      const items: Entry[] = [];
      for await (const item of store.read(header.id, { ...range, limit: most + 1 })) items.push(item);
      const more = items.length > most;
      if (more) items.pop();
      return answer({ items, next: more ? String(items.at(-1)?.seq) : null });
    },
  });
  route(app, {
    method: "get",
    path: "/api/sessions/:id/entries/:entryId",
    operationId: "getEntry",
    summary: "One entry.",
    answers: { 200: { description: "The entry.", schema: entry } },
    async handle({ param, caller }) {
      const { header } = await visibleHead(services, param("id"), caller);
      const found = await store.getEntry(header.id, param("entryId"));
      if (found === null) throw new UnknownEntryError(header.id, param("entryId"));
      return answer(found);
    },
  });
}

function mountAppending(app: ServerApp, services: ServerServices): void {
  route(app, {
    method: "post",
    path: "/api/sessions/:id/entries",
    operationId: "appendEntries",
    summary: "Appends entries, all or none; the same ids with the same content again change nothing.",
    body: newEntries,
    answers: { 201: { description: "What was appended.", schema: appended } },
    async handle({ param, body, caller }) {
      for (const draft of body.entries) checkAppendable(draft);
      const { expectedVersion, onto } = body;
      const options: AppendOptions = {
        ...(expectedVersion === undefined ? {} : { expectedVersion }),
        ...(onto === undefined ? {} : { onto }),
      };
      const tree = await openTree(services, param("id"), caller);
      const { version, entries } = await tree.appendAll(body.entries, options);
      return answer({ version, entries }, { status: 201 });
    },
  });
  route(app, {
    method: "post",
    path: "/api/sessions/:id/turns",
    operationId: "addTurn",
    summary: "Adds a turn; the same turnId with the same content again changes nothing.",
    body: newTurn,
    answers: { 201: { description: "The session after it.", schema: sessionView } },
    async handle({ param, body, caller, as }) {
      await services.manager.addTurn(param("id"), body, as);
      return answer(await readView(services, param("id"), caller), { status: 201 });
    },
  });
}

function checkAppendable({ type }: EntryDraft): void {
  if (isNode({ type }) || FACTS.has(type)) return;
  throw new SessionError("INVALID_ENTRY", `An entry of the type ${show(type)} cannot be appended from outside.`);
}
