import assert from "node:assert/strict";
import type { Model, ModelDelta, ModelReply, ModelRequest } from "../../agent/model/model.ts";
import type { ToolSchema } from "../../session/log/setup.ts";
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

/** A question that the model is to answer with a tool. */
export const whereIsIt: Message = Object.freeze({
  role: "user",
  content: "Where is order 4711? Find it with the tool.",
});

/** A request to repeat a word, so that an answer can be matched to its request. */
export function repeatRequest(word: string): ModelRequest {
  return { messages: [{ role: "user", content: `Repeat this word and nothing else: ${word}` }] };
}

/** Opens the subject's model, sends a request and checks the answer. */
export async function ask(subject: ModelSubject, request: ModelRequest): Promise<ModelReply> {
  const reply = await (await subject.open()).complete(request);
  checkReply(reply);
  return reply;
}

/** Streams an answer and returns all deltas; fails if the model cannot stream. */
export async function askInPieces(model: Model, request: ModelRequest, signal?: AbortSignal): Promise<ModelDelta[]> {
  assert.equal(
    typeof model.stream,
    "function",
    "the subject does not declare that it lacks streams, and the model has no `stream`",
  );
  const deltas: ModelDelta[] = [];
  for await (const delta of model.stream?.(request, signal === undefined ? {} : { signal }) ?? []) deltas.push(delta);
  return deltas;
}

/** Checks the end of a stream. Returns the answer in its finish, and the answer that the deltas add up to. */
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
  assert.equal(
    whole.stopReason ?? finish.stopReason,
    finish.stopReason,
    "the finish and its answer have the same stop reason",
  );
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

/** The concatenated parts of one type in an answer. */
export function textOfParts(content: Content | null, type: "text" | "thinking"): string {
  if (content === null) return "";
  if (typeof content === "string") return type === "text" ? content : "";
  return content.flatMap((part: ContentPart) => (part.type === type ? [part.text] : [])).join("");
}

/** Checks that a request is answered, or refused with an error that is not retryable; returns null in the second case. */
export async function askOrRefuse(subject: ModelSubject, request: ModelRequest): Promise<ModelReply | null> {
  try {
    return await ask(subject, request);
  } catch (error) {
    assert(
      error instanceof SessionError,
      `an unsupported request must be refused with a SessionError: ${String(error)}`,
    );
    if (error instanceof ModelError)
      assert.equal(error.retryable, false, "the error of an unsupported request is not retryable");
    else assert.equal(error.code, "INVALID_OPTION");
    return null;
  }
}
