import type { JsonObject, JsonValue } from "../internal/json.ts";
import { compactionMessage, type ContextPath, messagesOf } from "../session/context/context.ts";
import type { Entry } from "../session/log/entry.ts";
import type { Content, Message } from "../session/message.ts";
import { type SessionTurn, turnOf } from "../session/state/state.ts";

/** One thing that was said, as a turn and as a model is told of it. */
export interface GroupItem {
  readonly turn: SessionTurn;
  readonly message: Message;
}

/** What is said in a context, the summary of what was left out first. */
export function contextItems({ compaction, entries }: ContextPath): readonly GroupItem[] {
  const items = entries.flatMap(itemsOf);
  return compaction === null ? items : [itemOf(compaction, compactionMessage(compaction.summary)), ...items];
}

/** What an entry says to a group: one thing, or nothing. */
export function itemsOf(entry: Entry): readonly GroupItem[] {
  if (entry.type === "message") return [{ turn: turnOf(entry), message: entry.message }];
  return messagesOf(entry).map((message) => itemOf(entry, message));
}

/** What is said by an entry that is no turn, such as a summary. Its details rule who sees it, as a turn's metadata does. */
function itemOf(entry: Entry, message: Message): GroupItem {
  const metadata = objectOf("details" in entry ? entry.details : undefined);
  const content: Content | null = message.content;
  const { id: turnId, timestamp } = entry;
  const turn = Object.freeze({ turnId, role: message.role, content, timestamp, metadata, tokensUsed: 0, cost: 0 });
  return { turn, message };
}

function objectOf(value: JsonValue | undefined): JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
}
