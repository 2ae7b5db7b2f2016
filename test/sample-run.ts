import { onTestFinished } from "vitest";
import type { Model, ModelDelta, ModelReply, ModelRequest } from "../src/agent/model/model.ts";
import type { RunEvent } from "../src/agent/run-event.ts";
import type { SessionRun } from "../src/agent/session-run.ts";
import type { Tool, ToolContext } from "../src/agent/tools/tool.ts";
import { acceptable } from "../src/session/context/context.ts";
import { type AssistantMessage, type Message, textOf, type ToolCall } from "../src/session/message.ts";
import { Session } from "../src/session/value/session.ts";
import type { Transcript } from "../src/session/value/transcript.ts";

/** A session value with one user message, as the input of a sample run. */
export function asking(text = "Do it."): Session {
  return Session.fromUserMessage(text);
}

/** A session value with the prompt of an agent, for a sample run. */
export function someAgent(prompt = "Be brief."): Session {
  return Session.fromAgentPrompt(prompt);
}

/** One tool call, with its arguments as a value or as text. */
export function callOf(id: string, name: string, args: unknown = {}): ToolCall {
  return { id, name, arguments: typeof args === "string" ? args : JSON.stringify(args) };
}

/** An answer that calls tools. */
export function calling(...toolCalls: readonly ToolCall[]): ModelReply {
  return { role: "assistant", content: null, toolCalls, stopReason: "tool_calls" };
}

/** An answer that ends a run. */
export function saying(content: string, extras: Partial<AssistantMessage> = {}): ModelReply {
  return { role: "assistant", content, stopReason: "stop", ...extras };
}

/** A tool that accepts any arguments. */
export function toolOf(
  name: string,
  execute: (args: unknown, context: ToolContext) => unknown = () => "done",
  extras: Partial<Tool> = {},
): Tool {
  return {
    schema: { name, description: `Does ${name}.`, parameters: { type: "object" } },
    check: (value) => ({ ok: true, value }),
    execute,
    ...extras,
  };
}

/** A model made from one function. */
export function modelOf(
  complete: (request: ModelRequest, options?: { readonly signal?: AbortSignal }) => Promise<ModelReply>,
  extras: Partial<Model> = {},
): Model {
  return { provider: "sample", id: "sample", complete, ...extras };
}

/** A model that always answers with this stream. */
export function streamOf(stream: (signal: AbortSignal) => AsyncIterable<ModelDelta>): Model {
  return modelOf(() => Promise.reject(new Error("This model streams.")), {
    stream: (_request, options) => stream(options?.signal as AbortSignal),
  });
}

/** The messages of a transcript as short texts: `user: hello`, `assistant: [look]`, `tool: done`. */
export function shortly(transcript: Transcript): string[] {
  return transcript.toMessages().map(inShort);
}

export function inShort(message: Message): string {
  const calls = message.role === "assistant" ? (message.toolCalls ?? []).map(({ name }) => `[${name}]`) : [];
  return `${message.role}: ${[textOf(message.content), ...calls].filter((text) => text !== "").join(" ")}`;
}

/** The results of a run's tool calls, parsed if they are JSON. */
export function resultsOf(transcript: Transcript): unknown[] {
  return transcript
    .toMessages()
    .flatMap((message) => (message.role === "tool" ? [jsonOrText(textOf(message.content))] : []));
}

function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** All events of a run, after it has ended. */
export async function eventsOf(run: SessionRun): Promise<RunEvent[]> {
  const events: RunEvent[] = [];
  for await (const event of run) events.push(event);
  return events;
}

/** Resolves with the first event of a type. */
export async function nextEvent<T extends RunEvent["type"]>(
  run: SessionRun,
  type: T,
  holds: (event: Extract<RunEvent, { type: T }>) => boolean = () => true,
): Promise<Extract<RunEvent, { type: T }>> {
  for await (const event of run) {
    if (event.type === type && holds(event as Extract<RunEvent, { type: T }>)) {
      return event as Extract<RunEvent, { type: T }>;
    }
  }
  throw new Error(`The run ended without ${type}.`);
}

/** Collects the warnings of this process until the test ends; `settled` waits for pending ones. */
export function collectWarnings(): { readonly messages: string[]; settled(): Promise<void> } {
  const messages: string[] = [];
  const listener = (warning: Error): void => {
    messages.push(warning.message);
  };
  process.on("warning", listener);
  onTestFinished(() => {
    process.off("warning", listener);
  });
  return { messages, settled: () => new Promise((resolve) => setImmediate(() => setImmediate(resolve))) };
}

/** Whether every tool call has a result and every result a call, so that any provider accepts the messages. */
export function isWhole(transcript: Transcript): boolean {
  const messages = transcript.toMessages();
  return JSON.stringify(acceptable(messages)) === JSON.stringify(messages);
}
