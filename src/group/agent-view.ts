import { asObject } from "../internal/json.ts";
import { compactionMessage, type ContextPath, messagesOf } from "../session/context/context.ts";
import type { Entry } from "../session/log/entry.ts";
import { type AssistantMessage, type Content, type Message, textOf } from "../session/message.ts";
import { type SessionTurn, turnOf } from "../session/state/state.ts";
import type { RowInit } from "../session/value/transcript.ts";
import type { TurnManager } from "./turns/turn-manager.ts";

/** What an agent is told when the last word was its own, as no provider takes a request that ends with an answer. */
export const YOUR_TURN = "It is your turn again. Go on, or say nothing.";

/** Decides which turns an agent sees. */
export interface TurnFilter {
  filterForAgent(turns: readonly SessionTurn[], agentName: string): readonly SessionTurn[];
}

/** What an agent may see: what the isolation and the turn manager both let through, in the order of the log. */
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
 * The rows that a loop agent starts from: its own turns are answers, those of others are messages that begin with the
 * speaker's name, and what people said is as it is. Calls of others and what their tools answered are left out.
 */
export function rowsFor(agentName: string, items: readonly GroupItem[]): readonly RowInit[] {
  const rows = items.flatMap(({ turn, message }): RowInit[] => {
    const told = toldTo(agentName, message);
    return told === null ? [] : [{ id: turn.turnId, message: told }];
  });
  const last = rows.at(-1)?.message;
  const open = last?.role === "assistant" && (last.toolCalls ?? []).length > 0;
  const answerable = last?.role === "user" || last?.role === "tool" || open;
  return answerable ? rows : [...rows, { message: { role: "user", content: YOUR_TURN } }];
}

function toldTo(agentName: string, message: Message): Message | null {
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

/** An answer that says nothing: it failed, or holds neither text nor pictures nor calls. */
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

/** Whether an answer holds nothing that others could be shown: no text, no pictures, no files. */
export function isEmpty({ content }: Pick<AssistantMessage, "content">): boolean {
  const files = Array.isArray(content) && content.some(({ type }) => type === "image" || type === "file");
  return !files && textOf(content).trim() === "";
}

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
  const metadata = asObject("details" in entry ? entry.details : undefined);
  const content: Content | null = message.content;
  const { id: turnId, timestamp } = entry;
  const turn = Object.freeze({ turnId, role: message.role, content, timestamp, metadata, tokensUsed: 0, cost: 0 });
  return { turn, message };
}
