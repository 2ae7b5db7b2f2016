import { SessionError, show } from "../errors.ts";
import type { EntryDraft } from "./entry.ts";

/**
 * Checks the answers among a client's drafts and returns the drafts. Results and approvals name a call by its id, so
 * two calls with the same id would be ambiguous. Copies of other logs are not checked: their calls are never run.
 *
 * @throws {SessionError} `INVALID_ENTRY` for an answer with two calls of the same id.
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

/** Invalid messages are left to the store, which refuses them by name. */
function repeatedCall(draft: EntryDraft | null | undefined): string | undefined {
  if (draft?.type !== "message" || draft.message?.role !== "assistant") return undefined;
  const { toolCalls } = draft.message;
  if (!Array.isArray(toolCalls) || toolCalls.length < 2) return undefined;
  const ids = toolCalls.map((call) => call?.id);
  return ids.find((id, index) => ids.indexOf(id) !== index);
}
