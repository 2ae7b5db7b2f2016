import { SessionError, show } from "../errors.ts";
import type { AssistantMessage, Message, ToolCall } from "../message.ts";
import type { Entry, EntryOf, EntryStamp } from "./entry.ts";

/** The role in which models see an entry; null for an entry that they never see, which cannot be edited. */
export function roleSeen(entry: Entry): Message["role"] | null {
  if (entry.type === "message") return entry.message.role;
  return entry.type === "custom_message" || entry.type === "branch_summary" ? "user" : null;
}

/** The own fields of an edit. */
export type EditInit = Omit<EntryOf<"context_edit">, keyof EntryStamp | "type">;

/**
 * Checks an edit against the entry that it names.
 *
 * @throws {SessionError} `INVALID_ENTRY` if models never see the target, if the replacement has another role, or if the
 * replacement of an answer has a call that the answer does not have. For `undo`: if the target is not an edit.
 */
export function checkEdit(sessionId: string, edit: EditInit, target: Entry): void {
  const problem = editProblem(edit, target);
  if (problem !== null)
    throw new SessionError("INVALID_ENTRY", `Entry ${show(target.id)} of session ${sessionId} ${problem}.`);
}

function editProblem({ undo, message }: EditInit, target: Entry): string | null {
  // The entry may have been an edit, or visible to models, before it was erased.
  if (target.type === "erased") return null;
  if (undo !== undefined)
    return target.type === "context_edit" ? null : "is not an edit, so that nothing can be undone";
  const role = roleSeen(target);
  if (role === null) return `is ${article(target.type)} ${target.type} entry, which models do not see; edit a message`;
  if (message === null || message === undefined) return null;
  if (message.role !== role) return `has the role ${role}, and the replacement the role ${message.role}; use ${role}`;
  if (target.type !== "message") return null;
  if (message.role === "tool" && target.message.role === "tool")
    return message.toolCallId === target.message.toolCallId
      ? null
      : `answers the call ${show(target.message.toolCallId)}, and the replacement ${show(message.toolCallId)}`;
  if (message.role !== "assistant") return null;
  const strange = strangeCall(message, target.message as AssistantMessage);
  return strange === undefined
    ? null
    : `has no other call ${show(strange.id)} of ${show(strange.name)}; a replacement keeps calls or leaves them out`;
}

/** Returns a call of the replacement that the answer does not have, or has fewer times. */
function strangeCall(replacement: AssistantMessage, answer: AssistantMessage): ToolCall | undefined {
  const left = [...(answer.toolCalls ?? [])];
  return (replacement.toolCalls ?? []).find((call) => {
    const at = left.findIndex(({ id, name }) => id === call.id && name === call.name);
    if (at >= 0) left.splice(at, 1);
    return at < 0;
  });
}

function article(type: string): string {
  return /^[aeiou]/.test(type) ? "an" : "a";
}
