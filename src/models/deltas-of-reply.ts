import type { ModelDelta, ModelReply } from "../agent/model/model.ts";
import { partsOf } from "../session/message.ts";

/** Splits a whole reply into stream deltas: thinking and text word by word, tool calls, and a `finish` with the whole reply. */
export function* deltasOfReply(reply: ModelReply): Generator<ModelDelta> {
  for (const part of partsOf(reply.content)) {
    if (!("text" in part)) continue;
    const type = part.type === "text" ? "text-delta" : "thinking-delta";
    for (const text of wordsOf(part.text)) yield { type, text };
  }
  for (const [index, call] of (reply.toolCalls ?? []).entries()) {
    yield { type: "tool-call-delta", index, id: call.id, name: call.name };
    for (const text of wordsOf(call.arguments)) yield { type: "tool-call-delta", index, arguments: text };
  }
  yield {
    type: "finish",
    stopReason: reply.stopReason ?? (reply.toolCalls?.length ? "tool_calls" : "stop"),
    ...(reply.usage === undefined ? {} : { usage: reply.usage }),
    reply,
  };
}

function wordsOf(text: string): readonly string[] {
  return text.match(/\s*\S+\s*$|\s*\S+|\s+/g) ?? [];
}
