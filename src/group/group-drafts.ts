import { runErrorOf } from "../agent/run-error.ts";
import type { JsonObject } from "../internal/json.ts";
import { uuidv7 } from "../internal/uuid.ts";
import type { EntryDraft } from "../session/log/entry.ts";
import type { AssistantMessage, Content, Message } from "../session/message.ts";
import type { Usage } from "../session/usage.ts";
import { GROUP_KEY, type GroupEnd } from "../session/log/group-state.ts";

const REASON_CHARACTERS_MAX = 2000;

/** Which agents see an agent's turns; all of them if neither field is given. */
export interface Visibility {
  readonly visibleTo?: readonly string[];
  readonly hiddenFrom?: readonly string[];
}

/** The message that a group must answer. */
export function questionDraft(
  content: Content,
  options: { readonly maxRounds: number; readonly turnId?: string; readonly metadata?: JsonObject },
): EntryDraft & { readonly id: string } {
  const { maxRounds, turnId: id = uuidv7(), metadata } = options;
  const message: Message = {
    role: "user",
    content,
    metadata: { ...metadata, [GROUP_KEY]: { kind: "message", maxRounds } },
  };
  return { type: "message", message, id };
}

/** An agent's answer to the group. */
export function answerMessage(agent: string, visibility: Visibility, message: AssistantMessage): AssistantMessage {
  const metadata = { ...visibility, ...message.metadata, [GROUP_KEY]: { kind: "turn" } };
  return { ...message, agent, metadata };
}

/** A row of an agent's run before its answer; visible to this agent only. */
export function workMessage(agent: string, message: Message): Message {
  const metadata = { ...message.metadata, visibleTo: [agent], [GROUP_KEY]: { kind: "work" } };
  return { ...message, agent, metadata };
}

/** Records that an agent had nothing to say, and the usage of that. */
export function passDraft(agent: string, spent: { readonly usage?: Usage; readonly cost?: number } = {}): EntryDraft {
  const usage = spent.usage === undefined ? {} : { usage: { ...spent.usage } };
  const cost = spent.cost === undefined ? {} : { cost: spent.cost };
  return { type: "custom", customType: GROUP_KEY, data: { kind: "passed", agent, ...usage, ...cost } };
}

/** Records that an agent refused, with its error. */
export function refusalDraft(agent: string, error: unknown): EntryDraft {
  return { type: "custom", customType: GROUP_KEY, data: { kind: "refused", agent, error: reasonOf(error) } };
}

/** Records that an agent failed, as a turn that no model sees. */
export function failureDraft(agent: string, error: unknown): EntryDraft {
  const message: Message = {
    role: "assistant",
    content: null,
    agent,
    stopReason: "error",
    metadata: { error: reasonOf(error), [GROUP_KEY]: { kind: "failed" } },
  };
  return { type: "message", message };
}

/** Records that the group stopped by itself. */
export function endDraft(reason: GroupEnd): EntryDraft {
  return { type: "custom", customType: GROUP_KEY, data: { kind: "ended", reason } };
}

/** The parts of an error that are recorded. */
export function reasonOf(error: unknown): JsonObject {
  const { code, message, details } = runErrorOf(error);
  return {
    name: error instanceof Error ? String(error.name) : "Error",
    message: wellFormed(message).slice(0, REASON_CHARACTERS_MAX),
    ...(code === null ? {} : { code }),
    ...(details === undefined ? {} : { details }),
  };
}

/** Truncation may split a surrogate pair, which no store accepts. */
function wellFormed(text: string): string {
  return text
    .slice(0, REASON_CHARACTERS_MAX)
    .replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "");
}
