import type { ToolSchema } from "../session/log/setup.ts";
import { type Message, textOf, type ToolCall, type ToolMessage } from "../session/message.ts";
import { parseToolCall } from "./offline-arguments.ts";
import { planOf } from "./offline-plan.ts";
import type { OfflineStep } from "./offline-step.ts";

/** How many characters of user messages are parsed (a quarter of a second at most); more is treated as pasted text. */
const CHARACTERS_READ_MAX = 50_000;

/** The progress on requests that are not answered yet. */
export interface OfflineProgress {
  /** The steps to call now; empty if all are done or one failed. */
  readonly next: readonly OfflineStep[];
  readonly results: readonly OfflineResult[];
  /** Steps that were skipped because an earlier one failed. */
  readonly skipped: readonly OfflineStep[];
  /** Steps whose tools are not offered. */
  readonly unavailable: readonly OfflineStep[];
  readonly unclear: readonly string[];
}

/** A call and its result. */
export interface OfflineResult {
  readonly call: ToolCall;
  readonly message: ToolMessage;
}

/** Reads a conversation from the last answer on: the requests since then, the calls that were made, and the next ones. */
export function progressOf(messages: readonly Message[], tools: readonly ToolSchema[]): OfflineProgress {
  const parseCall = parseToolCall(tools);
  const calls = new Map<string, ToolCall>();
  const results: OfflineResult[] = [];
  const unavailable: OfflineStep[] = [];
  const unclear: string[] = [];
  let rounds: (readonly OfflineStep[])[] = [];
  let failed = false;
  let charactersLeft = CHARACTERS_READ_MAX;
  for (const message of messages.slice(lastAnswer(messages) + 1)) {
    if (message.role === "user" && !isSummary(message)) {
      // A user message after a failure drops the remaining steps.
      if (failed) rounds = [];
      failed = false;
      const text = textOf(message.content);
      const plan = text.length > charactersLeft ? { rounds: [], unclear: [text] } : planOf(text, parseCall);
      charactersLeft -= text.length;
      const offered = (step: OfflineStep): boolean => tools.some(({ name }) => name === step.tool);
      const possible = plan.rounds.map((round) => round.filter(offered));
      rounds.push(...possible.filter((round) => round.length > 0));
      unavailable.push(...plan.rounds.flat().filter((step) => !offered(step)));
      unclear.push(...plan.unclear);
    } else if (message.role === "assistant") {
      rounds.shift();
      for (const call of message.toolCalls ?? []) calls.set(call.id, call);
    } else if (message.role === "tool") {
      const call = calls.get(message.toolCallId);
      if (call !== undefined) results.push({ call, message });
      failed ||= message.isError === true;
    }
  }
  return {
    next: failed ? [] : (rounds[0] ?? []),
    results,
    skipped: failed ? rounds.flat() : [],
    unavailable,
    unclear,
  };
}

function lastAnswer(messages: readonly Message[]): number {
  return messages.findLastIndex((message) => message.role === "assistant" && !message.toolCalls?.length);
}

/** Whether a message is a summary of earlier messages, whose requests must not be carried out again. */
function isSummary(message: Message): boolean {
  return /^[^\n]*\n\n<summary>\n[\s\S]*\n<\/summary>$/.test(textOf(message.content));
}
