import {
  checkArgument,
  checkOptionsOf,
  checkStoreArgument,
  isStream,
  type KeysOf,
} from "../session/check-arguments.ts";
import { setImmediate as otherWork } from "node:timers/promises";
import { defined } from "../internal/defined.ts";
import type { JsonObject } from "../internal/json.ts";
import { type Entry, type EntryDraft, isNode } from "../session/log/entry.ts";
import { erasedEntry } from "../session/log/erased-entry.ts";
import { excessProblem } from "../session/log/entry-check.ts";
import { SessionError } from "../session/errors.ts";
import type { SessionHead } from "../session/log/fold.ts";
import { checkHeader, type SessionHeader } from "../session/log/header.ts";
import { UNKNOWN_LINEAGE } from "../session/lineage/lineage-scope.ts";
import type { CreateOptions, SessionStore } from "../session/store.ts";
import { findErased, refuseErased } from "../stores/tombstones.ts";
import type { FindBlob } from "../session/blob.ts";
import { entryProblem } from "../stores/jsonl/log-line.ts";

/** Options of `importSession`. */
export interface ImportOptions {
  /** The owner of the session (default: the user in the file). */
  readonly userId?: string | null;
  /** The id in this store (default: the id in the file). */
  readonly id?: string;
  /**
   * Imports the log unchanged, with its open runs, approvals, placement and lineage (default false). Only for moving sessions
   * between your own stores: never set it for a file that someone else may have written.
   */
  readonly trust?: boolean;
  /** Whether the usage in the file counts in sums (default true). */
  readonly counts?: boolean;
  /** Maximum number of entries (default: no limit). The store creates the session in one step that cannot be interrupted. */
  readonly entriesMax?: number;
  /** Finds images and files that the file refers to and does not contain. */
  readonly findBlob?: FindBlob;
  /** Limits that the store checks in the same step. */
  readonly limits?: Pick<CreateOptions, "maxOpenPerUser" | "variablesBytesMax">;
}

const IMPORT_KEYS: KeysOf<ImportOptions> = {
  userId: true,
  id: true,
  trust: true,
  counts: true,
  entriesMax: true,
  findBlob: true,
  limits: true,
};

/** The `customType` of the entry that records the header fields which an import removed. */
const IMPORTED_NOTE = "skein.imported";

/** The `customType` of the entry that an edit of an untrusted file becomes. */
const EDIT_NOTE = "skein.context_edit";

/** How many lines are read before yielding to the event loop. */
const LINES_AT_ONCE = 200;
const AHEAD_MAX_MS = 24 * 60 * 60 * 1000;

/**
 * Creates a session from the lines of a JSONL export or of a jsonl store's file, each with or without its newline.
 *
 * - Ids, order, parents, times, labels and unknown entry types are kept.
 * - All lines are read and checked first; then the session is created in one atomic step.
 * - An imported log has content but no authority. Its header marks every entry as `inherited`: approvals, runs and waiting
 *   requests in it have no effect, a call without a result never runs, `by` is removed, and edits of the context become `custom` entries. Placement and lineage are moved
 *   into a `custom` entry at the end. `trust` imports the log unchanged instead.
 *
 * @throws {SessionError} `NOT_A_SESSION` if the first line is not a session header, `UNSUPPORTED_VERSION` for a later
 * format, `DAMAGED` for a line that is cut off or invalid, `UNKNOWN_ENTRY` for a reference to an entry that does not exist,
 * `TOO_LARGE` for more than `entriesMax` entries, `INVALID_VALUE` for a value that nests too deep or has a forbidden key,
 * `SESSION_EXISTS` if the id is taken.
 */
export async function importSession(
  store: SessionStore,
  lines: AsyncIterable<string> | Iterable<string>,
  options: ImportOptions = {},
): Promise<SessionHead> {
  checkStoreArgument(store, "importSession");
  checkArgument(isStream(lines), lines, "importSession", "the lines of a session");
  checkOptionsOf(options, IMPORT_KEYS, "importSession");
  const trust = options.trust === true;
  const entriesMax = options.entriesMax ?? Number.POSITIVE_INFINITY;
  let header: SessionHeader | null = null;
  const entries: Entry[] = [];
  const ids = new Set<string>();
  let number = 0;
  for await (const line of lines) {
    checkArgument(typeof line === "string", line, "importSession", "lines that are texts");
    number++;
    if (number % LINES_AT_ONCE === 0) await otherWork();
    if (header === null) {
      header = parseHeader(line);
      if (!trust && isAhead(header.createdAt)) throw damaged(number, AHEAD);
    } else {
      for (const entry of parseEntries(line, number, entriesMax - entries.length)) {
        const problem = ids.has(entry.id) ? "it repeats the id of an earlier entry" : trust ? null : excessOf(entry);
        if (problem !== null) throw damaged(number, problem);
        ids.add(entry.id);
        entries.push(entry);
      }
    }
  }
  if (header === null) throw notASession("it is empty");
  await refuseErased(store, header);
  const erased = await findErased(store, entries);
  const kept =
    erased.size === 0 ? entries : entries.map((entry) => (erased.has(entry.id) ? erasedEntry(entry) : entry));
  const { id = header.id, userId = header.userId } = options;
  const named = { ...header, id, userId };
  const found = options.findBlob === undefined ? {} : { findBlob: options.findBlob };
  if (trust) return store.create(checkHeader(named), { entries: kept, ...found, ...options.limits });
  const words = wordsOf(named, kept);
  const inherited = { entries: words.entries.length, counts: options.counts !== false };
  return store.create(checkHeader({ ...words.header, inherited }), {
    entries: words.entries,
    ...found,
    ...options.limits,
  });
}

/** The log without authors, placement, root and lineage, which an untrusted file must not set. */
function wordsOf(
  header: SessionHeader,
  entries: readonly Entry[],
): { readonly header: SessionHeader; readonly entries: readonly EntryDraft[] } {
  const { rootId: _rootId, ...rest } = header;
  const { sandbox, forkedFrom, lineage } = rest;
  // The author (`by`) is removed: a file could name anyone.
  const said = entries.map(({ by: _by, ...entry }): EntryDraft => withoutEdit(entry as Entry));
  // A lineage without parents or references to them records only how the session began, and is kept.
  const began = lineage.parents.length === 0 && lineage.extras.length === 0 && !lineage.kind.startsWith("op_");
  const taken: JsonObject = {
    ...(sandbox === null ? {} : { sandbox: { ...sandbox } }),
    ...(forkedFrom === null ? {} : { forkedFrom: { ...forkedFrom } }),
    ...(began ? {} : { lineage: { ...lineage } }),
  };
  if (Object.keys(taken).length === 0) return { header: rest, entries: said };
  const words = { ...rest, sandbox: null, forkedFrom: null, lineage: began ? lineage : UNKNOWN_LINEAGE };
  const note: EntryDraft = { type: "custom", customType: IMPORTED_NOTE, data: taken, parentId: leafOf(entries) };
  return { header: words, entries: [...said, note] };
}

/**
 * An edit of an untrusted file has no effect: people would read one text, and models another. A node without words keeps its
 * place, as other entries follow it.
 */
function withoutEdit(entry: Entry): Entry {
  if (entry.type !== "context_edit") return entry;
  const { type: _type, targetId, undo, message: _message, reason: _reason, ...stamp } = entry;
  return { type: "custom", customType: EDIT_NOTE, data: defined({ targetId, undo }), ...stamp };
}

/** The leaf at the end of a log. */
function leafOf(entries: readonly Entry[]): string | null {
  let leafId: string | null = null;
  for (const entry of entries) {
    if (entry.type === "leaf") leafId = entry.targetId;
    else if (isNode(entry) && entry.parentId === leafId) leafId = entry.id;
  }
  return leafId;
}

const AHEAD = "its time is more than a day ahead of this machine's clock";

/** Why an untrusted entry is refused: a time in the future would always sort as the newest, and an excessive value would distort sums. */
function excessOf(entry: Entry): string | null {
  return isAhead(entry.timestamp) ? AHEAD : excessProblem(entry);
}

function isAhead(time: string): boolean {
  return Date.parse(time) > Date.now() + AHEAD_MAX_MS;
}

function parseHeader(line: string): SessionHeader {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (cause) {
    if (line.startsWith('{"type":"session"')) throw damaged(1, "the header is not JSON", cause);
    throw notASession("its first line is not JSON", cause);
  }
  if ((value as { readonly type?: unknown } | null)?.type !== "session")
    throw notASession("its first line is not a session header");
  return checkHeader(value);
}

function parseEntries(line: string, number: number, entriesMax: number): Entry[] {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (cause) {
    throw damaged(number, "it is cut off or not JSON", cause);
  }
  const items: unknown[] = Array.isArray(value) ? value : [value];
  if (items.length === 0) throw damaged(number, "it is an empty list");
  if (items.length > entriesMax) {
    throw new SessionError(
      "TOO_LARGE",
      `The file has more entries than one import accepts, from line ${number} on; nothing was imported.`,
    );
  }
  for (const item of items) {
    const problem = entryProblem(item);
    if (problem !== null) throw damaged(number, problem);
  }
  return items as Entry[];
}

function damaged(line: number, reason: string, cause?: unknown): SessionError {
  return new SessionError("DAMAGED", `Line ${line} cannot be imported: ${reason}; nothing was imported.`, { cause });
}

function notASession(reason: string, cause?: unknown): SessionError {
  return new SessionError("NOT_A_SESSION", `This is not a session file: ${reason}; nothing was imported.`, { cause });
}
