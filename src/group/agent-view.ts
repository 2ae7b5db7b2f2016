import { asObject } from "../internal/json.ts";
import { compactionMessage, type ContextPath, messagesOf } from "../session/context/context.ts";
import type { Entry } from "../session/log/entry.ts";
import { type AssistantMessage, type Content, type Message, textOf } from "../session/message.ts";
import { type SessionTurn, turnOf } from "../session/state/state.ts";
import type { RowInit } from "../session/value/transcript.ts";
import type { TurnManager } from "./turns/turn-manager.ts";

/**
 * The user message for an agent whose own answer is the last message, because no provider accepts a request that ends
 * with an answer.
 */
export const YOUR_TURN = "It is your turn again. Go on, or say nothing.";

/** Decides which turns an agent sees. */
export interface TurnFilter {
  filterForAgent(turns: readonly SessionTurn[], agentName: string): readonly SessionTurn[];
}

/** The turns that an agent may see: those that both the isolation and the turn manager allow, in log order. */
export function visibleTo(
  agentName: string,
  items: readonly GroupItem[],
  isolation: TurnFilter,
  turnManager: Pick<TurnManager, "filterVisible">,
): readonly GroupItem[] {
  const turns = items.map(({ turn }) => turn);
  const shown = turnIds(isolation.filterForAgent(turns, agentName));
  const allowed = turnIds(turnManager.filterVisible(turns, { agentName }));
  return items.filter(({ turn }) => shown.has(turn.turnId) && allowed.has(turn.turnId));
}

/**
 * The rows from which an agent with a model starts: its own turns are answers, those of others are user messages that
 * begin with the speaker's name, and user messages are unchanged. Calls of others and their results are left out.
 */
export function rowsFor(agentName: string, items: readonly GroupItem[]): readonly RowInit[] {
  const rows = items.flatMap(({ turn, message }): RowInit[] => {
    const told = visibleMessage(agentName, message);
    return told === null ? [] : [{ id: turn.turnId, message: told }];
  });
  const last = rows.at(-1)?.message;
  const open = last?.role === "assistant" && (last.toolCalls ?? []).length > 0;
  const answerable = last?.role === "user" || last?.role === "tool" || open;
  return answerable ? rows : [...rows, { message: { role: "user", content: YOUR_TURN } }];
}

function visibleMessage(agentName: string, message: Message): Message | null {
  const { metadata: _metadata, ...plain } = message;
  const own = message.agent === agentName;
  if (message.role === "tool") return own ? plain : null;
  if (message.role !== "assistant") {
    const { role, agent: speaker, content } = message;
    return speaker === undefined ? plain : { role, content: spokenBy(speaker, content) };
  }
  if (isVoid(message)) return null;
  if (!own && isEmpty(message)) return null;
  return own ? plain : { role: "user", content: spokenBy(message.agent ?? "assistant", message.content ?? "") };
}

/** Whether an answer is empty: it failed, or has no text, pictures or calls. */
function isVoid(message: AssistantMessage): boolean {
  return message.stopReason === "error" || (isEmpty(message) && (message.toolCalls ?? []).length === 0);
}

function spokenBy(speaker: string, content: Content): Content {
  if (typeof content === "string") return `${speaker}: ${content}`;
  const said = content.filter(({ type }) => type !== "thinking");
  return [{ type: "text", text: `${speaker}: ` }, ...said];
}

function turnIds(turns: readonly SessionTurn[]): ReadonlySet<string> {
  return new Set(turns.map(({ turnId }) => turnId));
}

/** The ids of items. */
export function idsOf(items: readonly GroupItem[]): ReadonlySet<string> {
  return turnIds(items.map(({ turn }) => turn));
}

/** Whether an answer has nothing to show to others: no text, pictures or files. */
export function isEmpty({ content }: Pick<AssistantMessage, "content">): boolean {
  const files = Array.isArray(content) && content.some(({ type }) => type === "image" || type === "file");
  return !files && textOf(content).trim() === "";
}

/** One message of a group's session, as a turn and as a model's message. */
export interface GroupItem {
  readonly turn: SessionTurn;
  readonly message: Message;
}

/** The messages of a context; the summary of a compaction comes first. */
export function contextItems({ compaction, entries }: ContextPath): readonly GroupItem[] {
  const items = entries.flatMap(itemsOf);
  return compaction === null ? items : [itemOf(compaction, compactionMessage(compaction.summary)), ...items];
}

/** The message of an entry; none for an entry that is not shown to a group. */
export function itemsOf(entry: Entry): readonly GroupItem[] {
  if (entry.type === "message") return [{ turn: turnOf(entry), message: entry.message }];
  return messagesOf(entry).map((message) => itemOf(entry, message));
}

/**
 * The message of an entry that is not a turn, such as a summary. Its details determine who sees it, like a turn's
 * metadata.
 */
function itemOf(entry: Entry, message: Message): GroupItem {
  const metadata = asObject("details" in entry ? entry.details : undefined);
  const content: Content | null = message.content;
  const { id: turnId, timestamp } = entry;
  const turn = Object.freeze({ turnId, role: message.role, content, timestamp, metadata, tokensUsed: 0, cost: 0 });
  return { turn, message };
}
