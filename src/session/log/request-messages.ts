import type { Content, RequestMessage } from "../message.ts";

/** What is said to a run: the content of one message of the user's, or several messages. Exactly one of both is given. */
export interface RequestInput {
  readonly input?: Content;
  readonly messages?: readonly RequestMessage[];
}

/** The messages that a run begins with; none where its input says nothing more, so that what was said last is answered. */
export function messagesAsked({ input = [], messages }: RequestInput): readonly RequestMessage[] {
  if (messages !== undefined) return messages;
  const silent = typeof input !== "string" && input.length === 0;
  return silent ? [] : [{ role: "user", content: input }];
}
