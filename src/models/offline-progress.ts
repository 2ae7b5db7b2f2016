import type { ToolSchema } from "../agent/model/model.ts";
import { type Message, textOf, type ToolCall, type ToolMessage } from "../session/message.ts";
import { parseToolCall } from "./offline-arguments.ts";
import { planOf } from "./offline-plan.ts";
import type { OfflineStep } from "./offline-step.ts";

/** How much of what was said is searched for requests, in a quarter of a second at most; what is longer was pasted. */
const CHARACTERS_READ_MAX = 50_000;

/** How far the requests have come that are not answered yet. */
export interface OfflineProgress {
  /** What to call now; empty when there is nothing left to do, or a step failed. */
  readonly next: readonly OfflineStep[];
  readonly results: readonly OfflineResult[];
  /** Steps that were given up because one before them failed. */
  readonly givenUp: readonly OfflineStep[];
  /** Steps whose tools are not offered. */
  readonly impossible: readonly OfflineStep[];
  readonly unclear: readonly string[];
}

/** A call that was made, with what came of it. */
export interface OfflineResult {
  readonly call: ToolCall;
  readonly message: ToolMessage;
}

/** Follows a conversation from the last answer on: what was asked since then, what was done, and what comes next. */
export function progressOf(messages: readonly Message[], tools: readonly ToolSchema[]): OfflineProgress {
  const parseCall = parseToolCall(tools);
  const calls = new Map<string, ToolCall>();
  const results: OfflineResult[] = [];
  const impossible: OfflineStep[] = [];
  const unclear: string[] = [];
  let rounds: (readonly OfflineStep[])[] = [];
  let failed = false;
  let charactersLeft = CHARACTERS_READ_MAX;
  for (const message of messages.slice(lastAnswer(messages) + 1)) {
    if (message.role === "user" && !isSummary(message)) {
      // Who speaks after a failure wants something else than what failed.
      if (failed) rounds = [];
      failed = false;
      const text = textOf(message.content);
      const plan = text.length > charactersLeft ? { rounds: [], unclear: [text] } : planOf(text, parseCall);
      charactersLeft -= text.length;
      const offered = (step: OfflineStep): boolean => tools.some(({ name }) => name === step.tool);
      const possible = plan.rounds.map((round) => round.filter(offered));
      rounds.push(...possible.filter((round) => round.length > 0));
      impossible.push(...plan.rounds.flat().filter((step) => !offered(step)));
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
    givenUp: failed ? rounds.flat() : [],
    impossible,
    unclear,
  };
}

function lastAnswer(messages: readonly Message[]): number {
  return messages.findLastIndex((message) => message.role === "assistant" && !message.toolCalls?.length);
}

/** Whether a message stands for an earlier part of the conversation, whose requests are not to be done again. */
function isSummary(message: Message): boolean {
  return /^[^\n]*\n\n<summary>\n[\s\S]*\n<\/summary>$/.test(textOf(message.content));
}
