import { sameJson } from "../../internal/json.ts";
import { uuidv7 } from "../../internal/uuid.ts";
import type { EntryDraft } from "../../session/log/entry.ts";
import { isInputId, isReservedId } from "../../session/log/open-runs.ts";
import type { Settings } from "../../session/log/settings.ts";
import type { SessionStore } from "../../session/store.ts";
import type { Row, Transcript } from "../../session/value/transcript.ts";
import type { LogRequest } from "./persist-option.ts";

/** The agent's instructions as a setting, if the path has others. */
export function settingDrafts(systemPrompt: string | null, settings: Settings): EntryDraft[] {
  return systemPrompt === settings.systemPrompt ? [] : [{ type: "variables", set: {}, unset: [], systemPrompt }];
}

/** The start of a run in a private log, which nobody else can know of yet; `before` entries of its append precede it. */
export function startedFirst({ runId, answers }: Pick<LogRequest, "runId" | "answers">, before: number): EntryDraft {
  return { type: "run", runId, phase: "started", claim: 0, before, ...answers };
}

/** All rows as entries of a new session. A row that stands there twice gets a new id the second time. */
export function rowDrafts(transcript: Transcript): EntryDraft[] {
  const seen = new Set<string>();
  const drafts: EntryDraft[] = [];
  for (const row of transcript) {
    drafts.push(rowDraft(row, seen.has(row.id)));
    seen.add(row.id);
  }
  return drafts;
}

/** The rows that a session lacks, and the entry that they follow. */
export interface MissingRows {
  readonly onto: string | null;
  readonly drafts: readonly EntryDraft[];
  /** Whether some rows were there already, below the entry that was asked for: this is another try of the same. */
  readonly repeated: boolean;
}

/** The rows from a position on, as entries below `entryId`. An id that the session has for something else is not used again. */
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
      sameJson(stored.message, row.message);
    if (repeats) onto = row.id;
    else drafts.push(rowDraft(row, stored !== null || seen.has(row.id)));
    seen.add(row.id);
  }
  return { onto, drafts, repeated: onto !== from.entryId };
}

function rowDraft({ id, message }: Row, taken: boolean): EntryDraft {
  return { type: "message", id: taken || isForeignTo(id) ? uuidv7() : id, message };
}

/** Whether an id is reserved for something that no row is: rows may come from a client, ids included. */
function isForeignTo(id: string): boolean {
  return isReservedId(id) && !isInputId(id);
}
