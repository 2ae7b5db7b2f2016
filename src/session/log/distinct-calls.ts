import { SessionError, show } from "../errors.ts";
import type { EntryDraft } from "./entry.ts";

/**
 * The drafts of a client, once their answers are checked. Results and approvals name a call by its id, so that a reader could not tell
 * two calls of one id apart. Copies of other logs are not checked: their calls are never run.
 *
 * @throws {SessionError} `INVALID_ENTRY` for an answer with two calls of one id.
 */
export function checkDistinctCalls(drafts: readonly EntryDraft[]): readonly EntryDraft[] {
  for (const draft of drafts) {
    const repeated = repeatedCall(draft);
    if (repeated === undefined) continue;
    throw new SessionError(
      "INVALID_ENTRY",
      `The answer has two calls with the id ${show(repeated)}; give each call an id of its own.`,
    );
  }
  return drafts;
}

/** What is no message yet is refused by the store, by name. */
function repeatedCall(draft: EntryDraft | null | undefined): string | undefined {
  if (draft?.type !== "message" || draft.message?.role !== "assistant") return undefined;
  const { toolCalls } = draft.message;
  if (!Array.isArray(toolCalls) || toolCalls.length < 2) return undefined;
  const ids = toolCalls.map((call) => call?.id);
  return ids.find((id, index) => ids.indexOf(id) !== index);
}
