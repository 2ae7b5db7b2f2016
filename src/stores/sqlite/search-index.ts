import { nextSlice } from "../../internal/long-work.ts";
import type { Entry } from "../../session/log/entry.ts";
import { entryText, type SearchTerm } from "../../session/search.ts";
import { SEQ_MAX } from "../rows/segments.ts";
import type { SearchIndex as TextIndex } from "../sql/session-search.ts";
import { refreshSessionRows } from "./refresh-session-rows.ts";
import type { SqliteHandle } from "./sqlite-handle.ts";

const TRIGRAMS_OF_TERM_MAX = 24;
const BATCH_ENTRIES = 500;
const BATCH_CHARACTERS = 1024 * 1024;
const BATCH_SESSIONS = 200;
/** Indexing a longer text would block other work for too long; each search reads such a text instead. */
const INDEXED_CHARACTERS_MAX = 256 * 1024;
/** Indexed in place of such a text; every search matches it, and so reads the text. */
const UNINDEXED = "\ue000\ue000\ue000";

// Combines a session's key and a `seq`. Not every driver supports numbered parameters.
const ROWID = "(? << 32 | ?)";

/** Whether this SQLite can index texts. */
export function canIndexTexts(handle: SqliteHandle): boolean {
  return handle.row("SELECT 1 FROM pragma_module_list WHERE name = 'fts5'") !== undefined;
}

/** Whether the index exists: the first search creates it. */
export function hasSearchIndex(handle: SqliteHandle): boolean {
  return handle.row("SELECT 1 FROM sqlite_schema WHERE name = 'search_index'") !== undefined;
}

interface UnindexedRow {
  readonly key: number;
  readonly id: string | null;
  readonly cwd: string | null;
  readonly name: string | null;
  readonly indexed: number;
  readonly version: number;
  readonly origin_version: number;
}

/**
 * A full-text index (FTS5) of the trigrams of every message, and of every session's id, name and working directory.
 *
 * Appends do not update it; each search first indexes what was appended since the last one. It stores no text, so a hit is
 * only a candidate that must be read. A message is indexed under its position, a session under the position `SEQ_MAX`.
 */
export class SearchIndex implements TextIndex {
  readonly keyOf: TextIndex["keyOf"] = (term) => {
    const expression = expressionOf(term);
    return expression === null ? null : `(${expression}) OR "${UNINDEXED}"`;
  };
  readonly owners = "SELECT rowid >> 32 AS key FROM search_index WHERE search_index MATCH ? LIMIT ?";
  readonly #handle: SqliteHandle;
  #lastCatchUp: Promise<void> = Promise.resolve();

  constructor(handle: SqliteHandle) {
    this.#handle = handle;
  }

  /** Runs one call after the other: a concurrent call has nothing left to do after the one before. */
  catchUp(): Promise<void> {
    const catchingUp = this.#lastCatchUp.then(() => this.#catchUp());
    this.#lastCatchUp = catchingUp.catch(() => {});
    return catchingUp;
  }

  async #catchUp(): Promise<void> {
    refreshSessionRows(this.#handle, 0);
    this.#handle.exec(
      `CREATE VIRTUAL TABLE IF NOT EXISTS search_index USING
         fts5 (text, content = '', contentless_delete = 1, detail = none, tokenize = 'trigram case_sensitive 1')`,
    );
    const left = this.#handle.row<{ count: number | null }>(
      "SELECT sum(version - indexed) AS count FROM sessions WHERE indexed < version",
    );
    // Every batch covers at least one entry or session, so this bounds the number of batches.
    for (let batches = left?.count ?? 0; batches > 0; batches--) {
      await nextSlice();
      if (!this.#handle.transaction(() => this.#indexBatch())) return;
    }
  }

  /** Removes a session's entries from a position on, and its id, name and directory. Must run in a transaction. */
  removeFrom(key: number, position: number): void {
    if (!hasSearchIndex(this.#handle)) return;
    const sql = `DELETE FROM search_index WHERE rowid BETWEEN ${ROWID} AND ${ROWID}`;
    this.#handle.change(sql, [key, position, key, SEQ_MAX]);
  }

  /** Indexes one batch. Returns whether more are left. */
  #indexBatch(): boolean {
    const rows = this.#handle.rows<UnindexedRow>(
      "SELECT key, id, cwd, name, indexed, version, origin_version FROM sessions WHERE indexed < version LIMIT ?",
      [BATCH_SESSIONS],
    );
    const budget = { entries: BATCH_ENTRIES, characters: BATCH_CHARACTERS };
    for (const row of rows) {
      if (row.indexed < 0) this.#indexSession(row);
      const end = this.#indexEntries(row, budget);
      this.#handle.change("UPDATE sessions SET indexed = ? WHERE key = ?", [end, row.key]);
      if (budget.entries <= 0 || budget.characters <= 0) return true;
    }
    return rows.length === BATCH_SESSIONS;
  }

  #indexSession({ key, id, cwd, name }: UnindexedRow): void {
    this.removeFrom(key, SEQ_MAX);
    if (id !== null) this.#add(key, SEQ_MAX, [id, name ?? "", cwd ?? ""].join("\n"));
  }

  /** Indexes entries until the budget is used up, and returns the position after the last one. */
  #indexEntries(row: UnindexedRow, budget: { entries: number; characters: number }): number {
    const sql = "SELECT body FROM entries WHERE session_key = ? AND seq = ?";
    let seq = Math.max(row.indexed, row.origin_version);
    let named = false;
    for (; seq < row.version && budget.entries > 0 && budget.characters > 0; seq++) {
      const body = this.#handle.row<{ body: string }>(sql, [row.key, seq])?.body;
      budget.entries -= 1;
      if (body === undefined) continue;
      const entry = JSON.parse(body) as Entry;
      named ||= entry.type === "session_info";
      const text = entryText(entry);
      budget.characters -= body.length;
      if (text !== "") this.#add(row.key, seq, text);
    }
    if (named) this.#indexSession(row);
    return seq;
  }

  #add(key: number, seq: number, text: string): void {
    const sql = `INSERT INTO search_index (rowid, text) VALUES (${ROWID}, ?)`;
    this.#handle.change(sql, [key, seq, text.length > INDEXED_CHARACTERS_MAX ? UNINDEXED : trigramText(text)]);
  }
}

/**
 * A text as it is indexed: in lower case, as a search compares it, and without characters that SQLite cannot index. Both the
 * index and the search terms are converted in this way, so no match is missed.
 */
export function trigramText(text: string): string {
  return (
    text
      .toLowerCase()
      // biome-ignore lint/suspicious/noControlCharactersInRegex: SQLite would cut the text off at a NUL.
      .replace(/\u0000/g, " ")
      .replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "\ufffd")
  );
}

/** The FTS5 expression that finds every text containing a term, or null if the index cannot find the term. */
export function expressionOf(term: SearchTerm): string | null {
  if (term.type !== "text") return null;
  // A term that begins or ends with half of a surrogate pair can match inside a character, which the index has only whole.
  if (/^[\udc00-\udfff]|[\ud800-\udbff]$/.test(term.text)) return null;
  const characters = [...trigramText(term.text)];
  const count = characters.length - 2;
  if (count < 1) return null;
  const step = Math.max(1, Math.ceil(count / TRIGRAMS_OF_TERM_MAX));
  const trigrams = new Set<string>();
  for (let start = 0; start < count; start += step) trigrams.add(characters.slice(start, start + 3).join(""));
  return [...trigrams].map((trigram) => `"${trigram.replaceAll('"', '""')}"`).join(" AND ");
}
