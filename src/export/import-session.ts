import {
  checkArgument,
  checkOptionsOf,
  checkStoreArgument,
  isStream,
  type KeysOf,
} from "../session/check-arguments.ts";
import { setImmediate as otherWork } from "node:timers/promises";
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
import { entryProblem } from "../stores/jsonl/log-line.ts";

/** How a session is imported. */
export interface ImportOptions {
  /** Whose session it becomes; the user of the file when this is not given. */
  readonly userId?: string | null;
  /** Its id in this store; the id of the file when this is not given. */
  readonly id?: string;
  /**
   * Takes the log as one's own, with its open runs, its approvals, its place and where it came from, exactly as the file
   * has it (default false). For moving sessions between stores of one's own; never for a file that someone else may have
   * written.
   */
  readonly trust?: boolean;
  /** Whether what the file says was spent counts in sums (default true). */
  readonly counts?: boolean;
  /** The most entries of the file (default: any number), as a store makes a session in one step that nothing interrupts. */
  readonly entriesMax?: number;
  /** What the store is to refuse in the same step. */
  readonly limits?: Pick<CreateOptions, "maxOpenPerUser" | "variablesBytesMax">;
}

const IMPORT_KEYS: KeysOf<ImportOptions> = {
  userId: true,
  id: true,
  trust: true,
  counts: true,
  entriesMax: true,
  limits: true,
};

/** The type of the `custom` entry that keeps what an import has taken out of a header. */
const IMPORTED_NOTE = "skein.imported";

/** How many lines are read before others of the program have their turn. */
const LINES_AT_ONCE = 200;
const AHEAD_MAX_MS = 24 * 60 * 60 * 1000;

/**
 * Makes a session of the lines of a JSONL export or of a jsonl store's file, each with or without its newline.
 *
 * - Ids, order, parents, times, labels and entry types that this version does not know stay as they are.
 * - All lines are read and checked first, and the session is made in one step: it is there as a whole, or not at all.
 * - A log that comes in is words. The header's `inherited` says so of every entry of it: what they approved, ran or left
 *   waiting does not count, a call without a result never runs, and nobody is named as the one who caused them. Where tools acted and which sessions it came from
 *   becomes a note, a `custom` entry at the end. `trust` takes the log as it is instead.
 *
 * @throws {SessionError} `NOT_A_SESSION` when the first line is no session's header, `UNSUPPORTED_VERSION` for a later
 * format, `DAMAGED` for a line that is cut off or not valid, `UNKNOWN_ENTRY` for an entry that names one that is not
 * there, `TOO_LARGE` for more than `entriesMax`, `INVALID_VALUE` for a value that nests too deep or has a key that is not allowed, `SESSION_EXISTS` for an id that
 * is taken.
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
  if (trust) return store.create(checkHeader(named), { entries: kept, ...options.limits });
  const words = wordsOf(named, kept);
  const inherited = { entries: words.entries.length, counts: options.counts !== false };
  return store.create(checkHeader({ ...words.header, inherited }), { entries: words.entries, ...options.limits });
}

/** What a log is without what only this store can say: where tools act, and which sessions it came from. */
function wordsOf(
  header: SessionHeader,
  entries: readonly Entry[],
): { readonly header: SessionHeader; readonly entries: readonly EntryDraft[] } {
  const { sandbox, forkedFrom, lineage } = header;
  // Who caused an entry is for this store to say: a file could name anyone.
  const said = entries.map(({ by: _by, ...entry }): EntryDraft => entry);
  // What has neither parents nor anything that refers to them says only who began it.
  const began = lineage.parents.length === 0 && lineage.extras.length === 0 && !lineage.kind.startsWith("op_");
  const taken: JsonObject = {
    ...(sandbox === null ? {} : { sandbox: { ...sandbox } }),
    ...(forkedFrom === null ? {} : { forkedFrom: { ...forkedFrom } }),
    ...(began ? {} : { lineage: { ...lineage } }),
  };
  if (Object.keys(taken).length === 0) return { header, entries: said };
  const words = { ...header, sandbox: null, forkedFrom: null, lineage: began ? lineage : UNKNOWN_LINEAGE };
  const note: EntryDraft = { type: "custom", customType: IMPORTED_NOTE, data: taken, parentId: leafOf(entries) };
  return { header: words, entries: [...said, note] };
}

/** Where a log's leaf is at its end. */
function leafOf(entries: readonly Entry[]): string | null {
  let leafId: string | null = null;
  for (const entry of entries) {
    if (entry.type === "leaf") leafId = entry.targetId;
    else if (isNode(entry) && entry.parentId === leafId) leafId = entry.id;
  }
  return leafId;
}

const AHEAD = "its time is more than a day ahead of this machine's clock";

/** What is too much of an entry that someone else may have made up: it would be the latest for ever, or spoil every sum. */
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
    throw notASession("its first line is no session's header");
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
      `The file has more entries than may be imported at once, from line ${number} on; nothing was imported.`,
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
  return new SessionError("NOT_A_SESSION", `This is not a session's file: ${reason}; nothing was imported.`, { cause });
}
