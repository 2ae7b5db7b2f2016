import type { Model, ModelReply, ModelRequest } from "../agent/model.ts";
import { textOf } from "../session/message.ts";
import { messageTokens } from "../session/tokens.ts";

const SENTENCES_MAX = 12;
const SENTENCE_CHARACTERS_MAX = 160;

/**
 * A deterministic model that needs no key and no network. Asked for a summary it lists the beginnings of what was said;
 * asked anything else it says that it is offline and repeats the question.
 */
export function offline(options: { readonly contextWindow?: number } = {}): Model {
  return {
    provider: "offline",
    id: "offline",
    contextWindow: options.contextWindow ?? 128_000,
    async complete(request, { signal } = {}) {
      signal?.throwIfAborted();
      return replyTo(request);
    },
  };
}

function replyTo(request: ModelRequest): ModelReply {
  const question = textOf(request.messages.findLast((message) => message.role === "user")?.content ?? "");
  const conversation = /^<conversation>\n(?<text>[\s\S]*)\n<\/conversation>/.exec(question)?.groups?.text;
  const content =
    conversation === undefined ? `I am offline. You said: ${cut(question)}` : summaryOf(conversation, question);
  const inputTokens = request.messages.reduce((sum, message) => sum + messageTokens(message), 0);
  const outputTokens = messageTokens({ role: "assistant", content });
  return {
    role: "assistant",
    content,
    provider: "offline",
    model: "offline",
    usage: { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens },
    cost: 0,
    stopReason: "stop",
  };
}

function summaryOf(conversation: string, question: string): string {
  const earlier = /<earlier-summary>\n(?<text>[\s\S]*)\n<\/earlier-summary>/.exec(question)?.groups?.text;
  const said = conversation.split("\n\n").filter((line) => line.startsWith("["));
  const shown = said.slice(0, SENTENCES_MAX).map((line) => `- ${cut(line)}`);
  const left = said.length - shown.length;
  return [
    ...(earlier === undefined ? [] : [earlier]),
    ...shown,
    ...(left > 0 ? [`- and ${left} more messages`] : []),
  ].join("\n");
}

function cut(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length <= SENTENCE_CHARACTERS_MAX
    ? line
    : `${line.slice(0, SENTENCE_CHARACTERS_MAX).replace(/[\ud800-\udbff]$/, "")}…`;
}
