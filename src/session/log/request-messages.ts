import type { Content, RequestMessage } from "../message.ts";

/** The input of a run: either the content of one user message, or several messages. Exactly one of the two is given. */
export interface RequestInput {
  readonly input?: Content;
  readonly messages?: readonly RequestMessage[];
}

/**
 * The messages with which a run starts; none if the input is empty: then the run answers the last message of the
 * session.
 */
export function messagesAsked({ input = [], messages }: RequestInput): readonly RequestMessage[] {
  if (messages !== undefined) return messages;
  const silent = typeof input !== "string" && input.length === 0;
  return silent ? [] : [{ role: "user", content: input }];
}
