import { invalidOption } from "./check-arguments.ts";
import { show } from "./errors.ts";
import type { Content, RequestMessage } from "./message.ts";

/**
 * The input of a run: a text, content parts, or messages. A session without messages accepts messages of every role;
 * later, only user messages are accepted. An empty list adds nothing: the last message of the session is answered.
 */
export type RunInput = Content | readonly RequestMessage[];

const ROLES: readonly unknown[] = ["system", "user", "assistant"];

/** An input in the form that a `run_request` stores: the content of one user message, or several messages. */
export type RequestedInput = { readonly input: Content } | { readonly messages: readonly RequestMessage[] };

/**
 * Converts an input to the form that a `run_request` stores.
 *
 * @throws {SessionError} `INVALID_OPTION` for anything other than a text, content parts or messages.
 */
export function requestedInput(input: RunInput): RequestedInput {
  if (typeof input === "string") return { input };
  if (!Array.isArray(input)) {
    throw invalidOption(
      `The input is ${show(input)}; give a text, content parts, or messages with a role and a content.`,
    );
  }
  const items = input as readonly unknown[];
  if (!items.some(hasRole)) return { input: input as Content };
  const messages = items.map((message, index): RequestMessage => {
    const { role, content, ...rest } = (hasRole(message) ? message : {}) as Partial<RequestMessage>;
    if (!ROLES.includes(role)) {
      const what = role === undefined ? "no role" : `the role ${show(role)}`;
      throw invalidOption(`Message ${index + 1} of the input has ${what}; give "system", "user" or "assistant".`);
    }
    const [other] = Object.keys(rest);
    if (other !== undefined)
      throw invalidOption(
        `Message ${index + 1} of the input has the field ${show(other)}; give its role and content alone.`,
      );
    return { role, content } as RequestMessage;
  });
  return { messages };
}

/**
 * Refuses messages of roles that only a new session accepts. Otherwise a caller could insert messages of an assistant
 * or the system into an existing conversation.
 *
 * @throws {SessionError} `INVALID_OPTION` for a message that is not a user's.
 */
export function checkUserMessages(sessionId: string, messages: readonly RequestMessage[]): void {
  const index = messages.findIndex(({ role }) => role !== "user");
  if (index === -1) return;
  throw invalidOption(
    `Message ${index + 1} of the input has the role ${show(messages[index]?.role)}, but session ${sessionId} already has messages and accepts only user messages; leave it out, or begin a new session.`,
  );
}

function hasRole(item: unknown): item is { readonly role: unknown } {
  return typeof item === "object" && item !== null && "role" in item;
}
