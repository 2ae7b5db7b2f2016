import assert from "node:assert/strict";
import type { Model, ModelDelta, ModelReply, ModelRequest, ToolSchema } from "../../agent/model/model.ts";
import { PartialReply } from "../../agent/model/collect-reply.ts";
import { ModelError } from "../../agent/model/model-error.ts";
import { freezeDeep } from "../../internal/freeze-deep.ts";
import { SessionError } from "../../session/errors.ts";
import type { Content, ContentPart, Message } from "../../session/message.ts";
import type { ModelSubject } from "../model-case.ts";

const STOP_REASONS = ["stop", "length", "tool_calls", "content_filter"];

/** A request for a plain answer. */
export const hello: ModelRequest = freezeDeep({
  messages: [{ role: "user" as const, content: "Say hello in one short sentence." }],
});

/** Two tools that a model may be told to call. */
export const orderTools: readonly ToolSchema[] = freezeDeep(
  ["find_order", "cancel_order"].map((name) => ({
    name,
    description: name === "find_order" ? "Says where an order is." : "Cancels an order.",
    parameters: {
      type: "object",
      properties: { number: { type: "string", description: "The order's number." } },
      required: ["number"],
      additionalProperties: false,
    },
  })),
);

/** A question that a tool is there for. */
export const whereIsIt: Message = Object.freeze({
  role: "user",
  content: "Where is order 4711? Find it with the tool.",
});

/** Asks for a word to be said again, so that an answer tells which question it belongs to. */
export function repeatRequest(word: string): ModelRequest {
  return { messages: [{ role: "user", content: `Repeat this word and nothing else: ${word}` }] };
}

/** Opens the subject's model and asks it. */
export async function ask(subject: ModelSubject, request: ModelRequest): Promise<ModelReply> {
  const reply = await (await subject.open()).complete(request);
  checkReply(reply);
  return reply;
}

/** Asks a model that must be able to stream, and gives all the pieces. */
export async function askInPieces(model: Model, request: ModelRequest, signal?: AbortSignal): Promise<ModelDelta[]> {
  assert.equal(typeof model.stream, "function", "the model says nothing of lacking streams, and has no `stream`");
  const deltas: ModelDelta[] = [];
  for await (const delta of model.stream?.(request, signal === undefined ? {} : { signal }) ?? []) deltas.push(delta);
  return deltas;
}

/** Checks the end of a stream, and gives the answer that it tells of and the one that its pieces add up to. */
export function joinPieces(model: Model, deltas: readonly ModelDelta[]): { whole: ModelReply; joined: ModelReply } {
  const finish = deltas.at(-1);
  assert.equal(finish?.type, "finish", "a stream ends with its finish");
  assert.equal(deltas.filter(({ type }) => type === "finish").length, 1, "a stream finishes once");
  const partial = new PartialReply(model);
  for (const delta of deltas) if (delta.type !== "finish") partial.add(delta);
  assert(finish?.type === "finish");
  const joined = partial.finish(finish.stopReason, finish.usage);
  const whole = finish.reply ?? joined;
  checkReply(whole);
  assert.equal(whole.stopReason ?? finish.stopReason, finish.stopReason, "the finish and its answer agree on the end");
  return { whole, joined };
}

/** Checks the shape that every answer has. */
export function checkReply(reply: ModelReply): void {
  assert.equal(reply.role, "assistant");
  assert(reply.content === null || typeof reply.content === "string" || Array.isArray(reply.content), "content");
  assert(reply.stopReason === undefined || STOP_REASONS.includes(reply.stopReason), `stop reason ${reply.stopReason}`);
  for (const call of reply.toolCalls ?? []) {
    assert(typeof call.id === "string" && call.id !== "", "a call has an id");
    assert(typeof call.name === "string" && call.name !== "", "a call has a name");
    assert.equal(typeof call.arguments, "string", "a call's arguments are text");
  }
  const ids = (reply.toolCalls ?? []).map(({ id }) => id);
  assert.equal(new Set(ids).size, ids.length, "the ids of calls differ");
}

/** What an answer says in its parts of one type, without anything between them. */
export function saidIn(content: Content | null, type: "text" | "thinking"): string {
  if (content === null) return "";
  if (typeof content === "string") return type === "text" ? content : "";
  return content.flatMap((part: ContentPart) => (part.type === type ? [part.text] : [])).join("");
}

/** Checks that a request is answered, or refused as a model refuses; gives null then. */
export async function askOrRefuse(subject: ModelSubject, request: ModelRequest): Promise<ModelReply | null> {
  try {
    return await ask(subject, request);
  } catch (error) {
    assert(
      error instanceof SessionError,
      `what a model cannot take is refused with an error of ours: ${String(error)}`,
    );
    if (error instanceof ModelError) assert.equal(error.retryable, false, "the same request would be refused again");
    else assert.equal(error.code, "INVALID_OPTION");
    return null;
  }
}
