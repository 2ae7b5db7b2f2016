import { z } from "zod";
import { cutText } from "../../../internal/cut-text.ts";
import { defined } from "../../../internal/defined.ts";
import { compact } from "../../../agent/context/compact.ts";
import { readSetup } from "../../../agent/persist/run-setup.ts";
import { countAhead } from "../../../agent/context/tokenizer.ts";
import { prepareCompaction, contextTokens } from "../../../session/context/compaction.ts";
import { readContextEntries } from "../../../tree/path-reader.ts";
import type {
  CompactionPreview,
  CompactRequest,
  CompactView,
  ContextEditView,
  ContextPartView,
  ContextSetupView,
  ContextView,
  OmittedPartView,
  UndoCompactionRequest,
} from "../../wire.ts";
import { WHOLE_CHARACTERS_MAX } from "./answer-bytes.ts";
import { answer, route, type ServerApp } from "../route.ts";
import { id, jsonObject, named, queryInteger } from "../schema.ts";
import type { ServerServices } from "../server-services.ts";
import { modelFor, openTree, readView, visibleHead } from "./session-access.ts";
import { entry, message } from "./entry-schemas.ts";
import { sessionView } from "./wire-schemas.ts";
import { acceptable, compactionMessage, contextPath, messagesOf } from "../../../session/context/context.ts";
import { type Edit, editsOn } from "../../../session/context/edits.ts";
import { roleSeen } from "../../../session/log/context-edit.ts";
import type { Entry, EntryOf } from "../../../session/log/entry.ts";
import type { SessionHead } from "../../../session/log/fold.ts";
import { type Message, textOf } from "../../../session/message.ts";
import type { SessionStore } from "../../../session/store.ts";
import { messageTokens } from "../../../session/context/tokens.ts";

const text = z.string();
const count = z.int().min(0);

const contextEdit = named<ContextEditView>("ContextEdit", z.object({ editId: text, reason: text.optional() }));
const contextPart = named<ContextPartView>(
  "ContextPart",
  z.object({ entryId: text.nullable(), message, tokens: count, edit: contextEdit.optional() }),
);
const omittedPart = named<OmittedPartView>(
  "OmittedPart",
  z.object({
    entryId: text,
    role: z.enum(["system", "user", "assistant", "tool"]),
    preview: text,
    edit: contextEdit,
  }),
);

const contextSetup = named<ContextSetupView>(
  "ContextSetup",
  z.object({
    entryId: text,
    agent: text,
    instructions: text.nullable(),
    isDigest: z.boolean(),
    tools: z.array(z.object({ name: text, description: text, parameters: jsonObject })),
    thinkingLevel: text.nullable(),
    temperature: z.number().nullable(),
    maxOutputTokens: z.number().nullable(),
  }),
);

const contextView = named<ContextView>(
  "Context",
  z.object({
    systemPrompt: text.nullable(),
    model: text.nullable(),
    thinkingLevel: text,
    variables: jsonObject,
    parts: z.array(contextPart),
    tokens: count,
    compaction: z.object({ entryId: text, summary: text, droppedEntries: count }).nullable(),
    setup: contextSetup.nullable(),
    omitted: z.array(omittedPart),
  }),
);

const compactionPreview = named<CompactionPreview>(
  "CompactionPreview",
  z.object({
    plan: z
      .object({ firstKeptEntryId: text, tokensBefore: count, droppedEntries: count, keptEntries: count })
      .nullable(),
  }),
);

const compactRequest = named<CompactRequest>(
  "CompactRequest",
  z.strictObject({ model: text.optional(), instructions: text.optional(), keepRecentTokens: count.optional() }),
);
const compacted = named<CompactView>("CompactResult", z.object({ entry: entry.nullable() }));
const undoRequest = named<UndoCompactionRequest>("UndoCompactionRequest", z.strictObject({ entryId: id.optional() }));

/** Adds the routes that read and compact the context of the next request to a model. */
export function mountContext(app: ServerApp, services: ServerServices): void {
  mountReading(app, services);
  mountCompacting(app, services);
}

function mountReading(app: ServerApp, services: ServerServices): void {
  const { store } = services;
  route(app, {
    method: "get",
    path: "/api/sessions/:id/context",
    operationId: "readContext",
    summary:
      "The context of the next request to a model, message by message. The cost is proportional to the size of the context.",
    answers: { 200: { description: "The context.", schema: contextView } },
    async handle({ param, caller }) {
      return answer(await readContextView(store, await visibleHead(services, param("id"), caller)));
    },
  });
  route(app, {
    method: "get",
    path: "/api/sessions/:id/compaction",
    operationId: "previewCompaction",
    summary: "Previews a compaction: what it would leave out and keep. Changes nothing.",
    query: z.strictObject({ keepRecentTokens: queryInteger(0).optional() }),
    answers: { 200: { description: "The plan.", schema: compactionPreview } },
    async handle({ param, query, caller }) {
      const head = await visibleHead(services, param("id"), caller);
      const path = head.leafId === null ? [] : await readContextEntries(store, head, head.leafId, WHOLE_CHARACTERS_MAX);
      const { keepRecentTokens } = query;
      const plan = prepareCompaction(path, {
        ...(keepRecentTokens === undefined ? {} : { keepRecentTokens }),
        tokenizer: await countAhead(path),
        undone: head.undone,
      });
      if (plan === null) return answer({ plan });
      const { firstKeptEntryId, tokensBefore, summarize, turnPrefix, keep } = plan;
      const droppedEntries = summarize.length + turnPrefix.length;
      return answer({ plan: { firstKeptEntryId, tokensBefore, droppedEntries, keptEntries: keep.length } });
    },
  });
}

function mountCompacting(app: ServerApp, services: ServerServices): void {
  route(app, {
    method: "post",
    path: "/api/sessions/:id/compact",
    operationId: "compactSession",
    summary: "Replaces the older part of the context by a summary that a model writes. No entry is deleted.",
    needs: "run",
    body: compactRequest,
    heavy: true,
    problems: [502],
    answers: {
      200: { description: "The compaction entry, or null if there was nothing to compact.", schema: compacted },
    },
    async handle({ param, body, caller, signal }) {
      const tree = await openTree(services, param("id"), caller);
      const { model, instructions, keepRecentTokens } = body;
      const made = await compact(tree, {
        model: await modelFor(services, model, tree.head),
        signal,
        ...(instructions === undefined ? {} : { instructions }),
        ...(keepRecentTokens === undefined ? {} : { settings: { keepRecentTokens } }),
      });
      return answer({ entry: made });
    },
  });
  route(app, {
    method: "post",
    path: "/api/sessions/:id/undo-compaction",
    operationId: "undoCompaction",
    summary: "Undoes a compaction, by default the one in force.",
    body: undoRequest,
    answers: { 200: { description: "The session after the change.", schema: sessionView } },
    async handle({ param, body, caller }) {
      const tree = await openTree(services, param("id"), caller);
      await tree.undoCompaction(body.entryId);
      return answer(await readView(services, tree.id, caller));
    },
  });
}

/** The context at the leaf, each message with the entry it comes from. The cost is proportional to the size of the context. */
async function readContextView(store: SessionStore, head: SessionHead): Promise<ContextView> {
  const path = head.leafId === null ? [] : await readContextEntries(store, head, head.leafId, WHOLE_CHARACTERS_MAX);
  const { compaction, entries } = contextPath(path, new Set(head.undone));
  const tokenizer = await countAhead(path);
  const sources = new Map<Message, string>();
  if (compaction !== null) sources.set(compactionMessage(compaction.summary), compaction.id);
  for (const entry of entries) for (const message of messagesOf(entry)) sources.set(message, entry.id);
  const edits = editsOn(path);
  const { model, thinkingLevel } = head.path;
  const settings = await store.settings(head.header.id, head.path);
  return {
    systemPrompt: settings.systemPrompt,
    model: model && `${model.provider}/${model.modelId}`,
    thinkingLevel,
    variables: settings.variables,
    parts: acceptable([...sources.keys()]).map((message) => {
      // A placeholder for a missing tool result has no entry.
      const entryId = sources.get(message) ?? null;
      const edit = edits.get(entryId ?? "");
      const shown = edit === undefined ? {} : { edit: editViewOf(edit) };
      return { entryId, message, tokens: messageTokens(message, tokenizer), ...shown };
    }),
    tokens: contextTokens(path, { tokenizer, undone: head.undone }),
    compaction: compaction && {
      entryId: compaction.id,
      summary: compaction.summary,
      droppedEntries: await droppedBy(store, head.header.id, compaction),
    },
    setup: await setupOf(store, head.header, entries),
    omitted: omittedParts(path, edits),
  };
}

/** The setup of the last answer's request; null if the answer does not name its setup, or if that was imported. */
async function setupOf(
  store: SessionStore,
  header: SessionHead["header"],
  entries: readonly Entry[],
): Promise<ContextSetupView | null> {
  const answer = entries.findLast((entry) => entry.type === "message" && entry.message.role === "assistant");
  const stored = answer?.type === "message" ? await readSetup(store, header, answer.setup) : null;
  if (stored === null) return null;
  const { agent, instructions = null, instructionsDigest, tools = [] } = stored.setup;
  const { thinkingLevel = null, temperature = null, maxOutputTokens = null } = stored.setup;
  const isDigest = instructionsDigest !== undefined;
  return { entryId: stored.id, agent, instructions, isDigest, tools, thinkingLevel, temperature, maxOutputTokens };
}

const PREVIEW_CHARACTERS = 120;

/** The entries that edits leave out of the part of a path that was read. */
function omittedParts(path: readonly Entry[], edits: ReadonlyMap<string, Edit>): readonly OmittedPartView[] {
  return path.flatMap((entry) => {
    const edit = edits.get(entry.id);
    const [role, [message]] = [roleSeen(entry), messagesOf(entry)];
    if (edit === undefined || edit.message !== null || role === null) return [];
    const calls = message?.role === "assistant" ? (message.toolCalls ?? []).map(({ name }) => name).join(", ") : "";
    const preview = cutText(textOf(message?.content ?? null) || calls, 0, PREVIEW_CHARACTERS);
    return [{ entryId: entry.id, role, preview, edit: editViewOf(edit) }];
  });
}

function editViewOf({ id: editId, reason }: Edit): ContextEditView {
  return { editId, ...defined({ reason }) };
}

/** The number of nodes before the first one that the compaction kept, computed from its depth. */
async function droppedBy(store: SessionStore, id: string, compaction: EntryOf<"compaction">): Promise<number> {
  const path = (await store.path(id, compaction.firstKeptEntryId)) ?? (await store.path(id, compaction.id));
  return Math.max(0, (path?.depth ?? 1) - 1);
}
