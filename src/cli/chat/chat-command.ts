import type { SessionTree } from "../../index.ts";
import { type ChatOutput, notice } from "./chat-output.ts";
import type { ChatSession } from "./chat-session.ts";

/** A command of a chat, typed as a line that begins with a slash. */
export type ChatCommand = {
  /** The command and its arguments, as the help shows them. */
  readonly usage: string;
  readonly summary: string;
  /** Set if the command requires an argument. */
  readonly argument?: "needed";
} & (
  | { readonly on: "anything"; run(chat: ChatSession, argument: string): AsyncIterable<ChatOutput> }
  /** Needs a session: refused before the first turn. */
  | { readonly on: "session"; run(chat: ChatSession, argument: string, tree: SessionTree): AsyncIterable<ChatOutput> }
);

/** Wraps a function that returns one text as a command that prints it. */
export function textCommand<A extends readonly unknown[]>(
  answer: (...given: A) => Promise<string>,
): (...given: A) => AsyncIterable<ChatOutput> {
  return async function* (...given) {
    yield notice(await answer(...given));
  };
}

/** Resolves a number of the last listing to its id; anything else is returned as it is. */
export function idFrom(listed: readonly string[], given: string): string {
  return (/^\d{1,3}$/.test(given) ? listed[Number(given) - 1] : undefined) ?? given;
}
