import type { SessionTree } from "../../index.ts";
import { type ChatOutput, notice } from "./chat-output.ts";
import type { ChatSession } from "./chat-session.ts";

/** Something that a line with a slash does. */
export type ChatCommand = {
  /** What to write. */
  readonly usage: string;
  readonly summary: string;
  /** Whether something must follow the name. */
  readonly argument?: "needed";
} & (
  | { readonly on: "anything"; run(chat: ChatSession, argument: string): AsyncIterable<ChatOutput> }
  /** Refused before the first turn. */
  | { readonly on: "session"; run(chat: ChatSession, argument: string, tree: SessionTree): AsyncIterable<ChatOutput> }
);

/** A command's work that comes to one text. */
export function saying<A extends readonly unknown[]>(
  answer: (...given: A) => Promise<string>,
): (...given: A) => AsyncIterable<ChatOutput> {
  return async function* (...given) {
    yield notice(await answer(...given));
  };
}

/** The id that was given, or that a number of the last listing stands for. */
export function idFrom(listed: readonly string[], given: string): string {
  return (/^\d{1,3}$/.test(given) ? listed[Number(given) - 1] : undefined) ?? given;
}
