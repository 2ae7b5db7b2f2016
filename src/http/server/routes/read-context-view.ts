import { loadTokenizer } from "../../../agent/context/tokenizer.ts";
import { contextTokens } from "../../../session/context/compaction.ts";
import { acceptable, compactionMessage, contextPath, messagesOf } from "../../../session/context/context.ts";
import type { EntryOf } from "../../../session/log/entry.ts";
import type { SessionHead } from "../../../session/log/fold.ts";
import type { Message } from "../../../session/message.ts";
import type { SessionStore } from "../../../session/store.ts";
import { messageTokens } from "../../../session/context/tokens.ts";
import { readContextEntries } from "../../../tree/path-reader.ts";
import type { ContextView } from "../../wire.ts";
import { ANSWER_CHARACTERS_MAX } from "./answer-bytes.ts";

/** What a model would see next at the leaf, each message with the entry it comes from. Costs what the context contains. */
export async function readContextView(store: SessionStore, head: SessionHead): Promise<ContextView> {
  const path = head.leafId === null ? [] : await readContextEntries(store, head, head.leafId, ANSWER_CHARACTERS_MAX);
  const { compaction, entries } = contextPath(path, new Set(head.undone));
  const tokenizer = await loadTokenizer();
  const sources = new Map<Message, string>();
  if (compaction !== null) sources.set(compactionMessage(compaction.summary), compaction.id);
  for (const entry of entries) for (const message of messagesOf(entry)) sources.set(message, entry.id);
  const { model, thinkingLevel } = head.path;
  const settings = await store.settings(head.header.id, head.path);
  return {
    systemPrompt: settings.systemPrompt,
    model: model && `${model.provider}/${model.modelId}`,
    thinkingLevel,
    variables: settings.variables,
    parts: acceptable([...sources.keys()]).map((message) => ({
      // A result that stands in for a missing one is of no entry.
      entryId: sources.get(message) ?? null,
      message,
      tokens: messageTokens(message, tokenizer),
    })),
    tokens: contextTokens(path, { tokenizer, undone: head.undone }),
    compaction: compaction && {
      entryId: compaction.id,
      summary: compaction.summary,
      droppedEntries: await droppedBy(store, head.header.id, compaction),
    },
  };
}

/** How many nodes stand before what a compaction kept; each node knows how deep it stands. */
async function droppedBy(store: SessionStore, id: string, compaction: EntryOf<"compaction">): Promise<number> {
  const path = (await store.path(id, compaction.firstKeptEntryId)) ?? (await store.path(id, compaction.id));
  return Math.max(0, (path?.depth ?? 1) - 1);
}
