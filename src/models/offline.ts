import { checkOptionsOf, type KeysOf } from "../session/check-arguments.ts";
import type { Model, ModelReply, ModelRequest } from "../agent/model/model.ts";
import type { ToolSchema } from "../session/log/setup.ts";
import { untilAborted } from "../agent/follow-abort.ts";
import { type AssistantMessage, type Message, textOf, type ToolCall } from "../session/message.ts";
import { messageTokens } from "../session/context/tokens.ts";
import { deltasOfReply } from "./deltas-of-reply.ts";
import { answerTo } from "./offline-answer.ts";
import { argumentsFor } from "./offline-arguments.ts";
import { progressOf } from "./offline-progress.ts";
import { createSampler } from "./offline-sample.ts";
import type { OfflineStep } from "./offline-step.ts";
import { summaryFor } from "./offline-summary.ts";

/** Options of `offline`. */
export interface OfflineOptions {
  readonly contextWindow?: number;
  /** Delay before each answer, to simulate a network (default 0). */
  readonly delayMs?: number;
}

/**
 * A deterministic model that needs no key and no network, for demos, examples and tests.
 *
 * - It understands simple requests for the workspace tools it is offered ("write hi to a.txt, then run cat a.txt"), calls
 *   them in consecutive rounds, or in one round for "at the same time", and reports the results.
 * - It calls any other tool on request: `call find_order with {"number": "4711"}`.
 * - For an `output` schema it returns the smallest value that fits.
 * - For a summary it lists the beginnings of the messages. To anything else it answers that it is offline.
 */
export function offline(options: OfflineOptions = {}): Model {
  checkOptionsOf(options, { contextWindow: true, delayMs: true } satisfies KeysOf<OfflineOptions>, "offline");
  const { contextWindow = 128_000, delayMs = 0 } = options;
  return {
    provider: "offline",
    id: "offline",
    contextWindow,
    takesOutput: () => true,
    async complete(request, { signal } = {}) {
      await wait(delayMs, signal);
      return replyTo(request);
    },
    async *stream(request, { signal } = {}) {
      await wait(delayMs, signal);
      for (const delta of deltasOfReply(replyTo(request))) {
        signal?.throwIfAborted();
        yield delta;
      }
    },
  };
}

function replyTo(request: ModelRequest): ModelReply {
  const { messages } = request;
  const toolCalls = callsFor(request);
  const content = toolCalls.length > 0 ? null : textFor(request);
  const answer = { role: "assistant", content, ...(toolCalls.length > 0 ? { toolCalls } : {}) } as const;
  const inputTokens = messages.reduce((sum, message) => sum + messageTokens(message), 0);
  const outputTokens = messageTokens(answer satisfies AssistantMessage);
  return {
    ...answer,
    provider: "offline",
    model: "offline",
    usage: { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens },
    cost: 0,
    stopReason: toolCalls.length > 0 ? "tool_calls" : "stop",
  };
}

function textFor({ messages, tools = [], toolChoice, output }: ModelRequest): string {
  if (output !== undefined) return JSON.stringify(createSampler("", output)(output));
  const question = lastQuestion(messages);
  const summary = messages.at(-1)?.role === "user" ? summaryFor(messages, question) : null;
  // Not parsed for requests: the text to summarize may be very long.
  if (summary !== null) return summary;
  const offered = toolChoice === "none" ? [] : tools;
  const progress = progressOf(messages, offered);
  return answerTo(offered.length === 0 ? { ...progress, unavailable: [] } : progress, question, offered);
}

function callsFor({ messages, tools = [], toolChoice = "auto" }: ModelRequest): readonly ToolCall[] {
  const question = lastQuestion(messages);
  const quotes = question.startsWith("<conversation>\n");
  if (toolChoice === "none" || tools.length === 0 || (quotes && toolChoice === "auto")) return [];
  const offered = typeof toolChoice === "object" ? tools.filter(({ name }) => name === toolChoice.name) : tools;
  const planned = progressOf(messages, tools).next.filter((step) => offered.some(({ name }) => name === step.tool));
  const steps = planned.length > 0 || toolChoice === "auto" ? planned : offered.slice(0, 1).map(demanded);
  let number = callNumber(messages);
  return steps.map((step) => {
    const tool = offered.find(({ name }) => name === step.tool) as ToolSchema;
    const args = argumentsFor(tool, step.values, question);
    return { id: `call_${++number}`, name: tool.name, arguments: JSON.stringify(args) };
  });
}

/** A call that `toolChoice` requires, whatever the user asked for. */
function demanded({ name }: ToolSchema): OfflineStep {
  return { tool: name, values: {}, said: name };
}

function lastQuestion(messages: readonly Message[]): string {
  return textOf(messages.findLast((message) => message.role === "user")?.content ?? "");
}

/** The highest number of a call id so far, so that ids stay unique in the conversation. */
function callNumber(messages: readonly Message[]): number {
  let number = 0;
  for (const message of messages) {
    if (message.role !== "assistant") continue;
    for (const { id } of message.toolCalls ?? []) {
      number = Math.max(number + 1, Number(/^call_(\d{1,9})$/.exec(id)?.[1] ?? 0));
    }
  }
  return number;
}

async function wait(delayMs: number, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  if (delayMs <= 0) return;
  let timer: NodeJS.Timeout | undefined;
  const elapsed = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, delayMs);
  });
  try {
    await (signal === undefined ? elapsed : untilAborted(elapsed, signal));
  } finally {
    clearTimeout(timer);
  }
}
