import { defined } from "../internal/defined.ts";
import type { EntryDraft } from "../session/log/entry.ts";
import { SessionError, show } from "../session/errors.ts";
import type { AssistantMessage, Message } from "../session/message.ts";
import type { SessionTurn } from "../session/state/state.ts";
import { NO_USAGE, type Usage } from "../session/usage.ts";

/** A turn for `addTurn`; a turn that was read from a session is valid, too. */
export interface TurnInput extends Partial<Omit<SessionTurn, "role" | "content">> {
  /** Makes a retry safe: adding the same id with the same content again changes nothing. */
  readonly turnId?: string;
  readonly role: SessionTurn["role"];
  /** Null only for an assistant's turn with tool calls. */
  readonly content: SessionTurn["content"];
  /** The total tokens of an assistant's turn, if its detailed `usage` is not known. */
  readonly tokensUsed?: number;
}

/** The role to which a field belongs; `null` for every role. */
const FIELDS: Readonly<Record<keyof TurnInput, SessionTurn["role"] | null>> = {
  turnId: null,
  role: null,
  content: null,
  timestamp: null,
  metadata: null,
  agent: null,
  toolCalls: "assistant",
  stopReason: "assistant",
  provider: "assistant",
  model: "assistant",
  usage: "assistant",
  tokensUsed: "assistant",
  cost: "assistant",
  toolCallId: "tool",
  toolName: "tool",
  isError: "tool",
};

/**
 * Converts a turn into an entry draft. The store refuses values that are not JSON or too large.
 *
 * @throws {SessionError} `INVALID_ENTRY` for an invalid role, field or amount.
 */
export function turnDraft(turn: TurnInput): EntryDraft {
  if (typeof turn !== "object" || turn === null || Array.isArray(turn)) throw invalidTurn("it is not an object");
  checkFields(turn);
  const { turnId, timestamp } = turn;
  return { type: "message", message: messageOf(turn), ...defined({ id: turnId, timestamp }) };
}

function checkFields(turn: TurnInput): void {
  const { role } = turn;
  if (!["user", "assistant", "system", "tool"].includes(role)) {
    throw invalidTurn(`its role is ${show(role)}, which is not one of user, assistant, system, tool`);
  }
  for (const [field, value] of Object.entries(turn)) {
    const only = Object.hasOwn(FIELDS, field) ? FIELDS[field as keyof TurnInput] : undefined;
    if (only === undefined)
      throw invalidTurn(`it has a field ${show(field)}, which no turn has; put your own in metadata`);
    // A turn that was read from a session has these fields, even if they are 0.
    const nothing = value === undefined || ((field === "tokensUsed" || field === "cost") && value === 0);
    if (only !== null && only !== role && !nothing) {
      throw invalidTurn(`it is a turn of the role ${role} and has ${field}, which only a turn of the role ${only} has`);
    }
  }
  for (const field of ["tokensUsed", "cost"] as const) {
    const amount = turn[field];
    if (amount !== undefined && !(Number.isFinite(amount) && amount >= 0)) {
      throw invalidTurn(`${field} is ${show(amount)}, not a number of 0 or more`);
    }
  }
}

function messageOf(turn: TurnInput): Message {
  const { role, content, agent, metadata } = turn;
  const extras = defined({ agent, metadata });
  if (role === "assistant") return assistantOf(turn, extras);
  // The store refuses missing fields by name.
  if (role === "tool") {
    const { toolCallId, toolName, isError } = turn;
    return { role, toolCallId, name: toolName, content, ...defined({ isError }), ...extras } as Message;
  }
  return { role, content, ...extras } as Message;
}

function assistantOf(turn: TurnInput, extras: Pick<AssistantMessage, "agent" | "metadata">): AssistantMessage {
  const { content, toolCalls, provider, model, cost, stopReason } = turn;
  const usage = usageOf(turn);
  const given = defined({ toolCalls, provider, model, usage, cost, stopReason });
  return { role: "assistant", content, ...extras, ...given };
}

function usageOf({ usage, tokensUsed }: TurnInput): Usage | undefined {
  if (usage === undefined) return tokensUsed === undefined ? undefined : { ...NO_USAGE, totalTokens: tokensUsed };
  if (tokensUsed !== undefined && tokensUsed !== usage?.totalTokens) {
    throw invalidTurn(`tokensUsed is ${tokensUsed}, but its usage is ${show(usage?.totalTokens)}; give one of them`);
  }
  return usage;
}

function invalidTurn(problem: string): SessionError {
  return new SessionError("INVALID_ENTRY", `The turn is not valid: ${problem}.`);
}
