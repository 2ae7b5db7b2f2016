import { defined } from "../../internal/defined.ts";
import { sameMessage } from "../../stores/blobs/message-blobs.ts";
import { uuidv7 } from "../../internal/uuid.ts";
import type { EntryDraft } from "../../session/log/entry.ts";
import { isInputId, isReservedId } from "../../session/log/open-runs.ts";
import type { Settings } from "../../session/log/settings.ts";
import type { SessionStore } from "../../session/store.ts";
import type { Row, Transcript } from "../../session/value/transcript.ts";
import type { LogRequest } from "./persist-option.ts";

/** The agent's instructions as a setting, if they differ from those of the path. */
export function settingDrafts(systemPrompt: string | null | undefined, settings: Settings): EntryDraft[] {
  if (systemPrompt === undefined || systemPrompt === settings.systemPrompt) return [];
  return [{ type: "variables", set: {}, unset: [], systemPrompt }];
}

/** The start of a run in a private log that no one else knows yet; `before` entries of its append precede it. */
export function startedFirst(
  { runId, answers }: Pick<LogRequest, "runId" | "answers">,
  before: number,
  setupId?: string,
): EntryDraft {
  return { type: "run", runId, phase: "started", claim: 0, before, ...answers, ...defined({ setup: setupId }) };
}

/** All rows as entries of a new session. A row that occurs twice gets a new id the second time. */
export function rowDrafts(transcript: Transcript): EntryDraft[] {
  const seen = new Set<string>();
  const drafts: EntryDraft[] = [];
  for (const row of transcript) {
    drafts.push(rowDraft(row, seen.has(row.id)));
    seen.add(row.id);
  }
  return drafts;
}

/** The rows that a session lacks, and the entry below which they are appended. */
export interface MissingRows {
  readonly onto: string | null;
  readonly drafts: readonly EntryDraft[];
  /** Whether some rows were already stored below the given entry: then this is a retry. */
  readonly repeated: boolean;
}

/**
 * The rows from a position on, as entries below `entryId`. An id that the session already uses for another entry is not
 * reused.
 */
export async function missingRows(
  store: SessionStore,
  sessionId: string,
  transcript: Transcript,
  from: { readonly entryId: string | null; readonly length: number },
): Promise<MissingRows> {
  const drafts: EntryDraft[] = [];
  const seen = new Set<string>();
  let onto = from.entryId;
  for (let index = from.length; index < transcript.length; index++) {
    const row = transcript.at(index) as Row;
    const stored = await store.getEntry(sessionId, row.id);
    const repeats =
      drafts.length === 0 &&
      stored?.type === "message" &&
      stored.parentId === onto &&
      sameMessage(stored.message, row.message);
    if (repeats) onto = row.id;
    else drafts.push(rowDraft(row, stored !== null || seen.has(row.id)));
    seen.add(row.id);
  }
  return { onto, drafts, repeated: onto !== from.entryId };
}

function rowDraft({ id, message }: Row, taken: boolean): EntryDraft {
  return { type: "message", id: taken || isForeignTo(id) ? uuidv7() : id, message };
}

/** Whether an id is reserved for an entry that is not a row: rows, including their ids, may come from a client. */
function isForeignTo(id: string): boolean {
  return isReservedId(id) && !isInputId(id);
}
