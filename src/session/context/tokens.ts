import { checkArgument, isObject } from "../check-arguments.ts";
import type { Entry } from "../log/entry.ts";
import { compactionMessage, messagesOf } from "./context.ts";
import type { Content, Message } from "../message.ts";

/** Counts the tokens of a text. */
export type TextTokenizer = (text: string) => number;

/** The estimated tokens of an image: providers count differently, and none reports the number before the request. */
export const IMAGE_TOKENS = 1200;

/** Estimates one token for every four characters, rounded up. */
export function estimateTextTokens(text: string): number {
  checkArgument(typeof text === "string", text, "estimateTextTokens", "a text");
  return Math.ceil(text.length / 4);
}

/** The tokens of one message: its text, thinking and tool calls by the tokenizer, and 1,200 for each image or file. */
export function messageTokens(message: Message, tokenizer: TextTokenizer = estimateTextTokens): number {
  checkArgument(isObject(message) && message.content !== undefined, message, "messageTokens", "a message");
  let tokens = message.content === null ? 0 : contentTokens(message.content, tokenizer);
  if (message.role === "assistant") {
    for (const call of message.toolCalls ?? []) tokens += tokenizer(call.name + call.arguments);
  }
  return tokens;
}

/** The tokens of an entry in a context; 0 for an entry that a model never sees. */
export function entryTokens(entry: Entry, tokenizer: TextTokenizer = estimateTextTokens): number {
  checkArgument(isObject(entry), entry, "entryTokens", "an entry");
  if (entry.type === "compaction") return messageTokens(compactionMessage(entry.summary), tokenizer);
  return messagesOf(entry).reduce((sum, message) => sum + messageTokens(message, tokenizer), 0);
}

function contentTokens(content: Content, tokenizer: TextTokenizer): number {
  if (typeof content === "string") return tokenizer(content);
  let tokens = 0;
  for (const part of content) tokens += "text" in part ? tokenizer(part.text) : IMAGE_TOKENS;
  return tokens;
}
