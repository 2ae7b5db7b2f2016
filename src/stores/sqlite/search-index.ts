import { nextSlice } from "../../internal/long-work.ts";
import type { Entry } from "../../session/log/entry.ts";
import { entryText } from "../../session/search.ts";
import { SEQ_MAX } from "../rows/segments.ts";
import type { SearchIndex as TextIndex } from "../sql/session-search.ts";
import { settleDownTo } from "./settling.ts";
import type { SqliteHandle } from "./sqlite-handle.ts";
import { expressionOf, trigramText } from "./trigrams.ts";

const BATCH_ENTRIES = 500;
const BATCH_CHARACTERS = 1024 * 1024;
const BATCH_SESSIONS = 200;
/** To index a longer text would hold up everyone else; each search reads it instead. */
const INDEXED_CHARACTERS_MAX = 256 * 1024;
/** What stands in the index for such a text: every search finds it, and looks into the text. */
const UNINDEXED = "\ue000\ue000\ue000";

// Of a session's key and a `seq`; numbered parameters would not work on every driver.
const ROWID = "(? << 32 | ?)";

/** Whether this SQLite can index texts. */
export function canIndexTexts(handle: SqliteHandle): boolean {
  return handle.row("SELECT 1 FROM pragma_module_list WHERE name = 'fts5'") !== undefined;
}

/** Whether there is an index of texts: it is made when it is first searched. */
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
 * An index of the trigrams of every message, and of every session's id, name and working directory.
 *
 * Appends do not touch it; a search first adds what has come since. It holds no text, so what it finds is a candidate
 * to be looked at. An entry is found under its own position, a session under the last one there is.
 */
export class SearchIndex implements TextIndex {
  readonly keyOf: TextIndex["keyOf"] = (term) => {
    const expression = expressionOf(term);
    return expression === null ? null : `(${expression}) OR "${UNINDEXED}"`;
  };
  readonly owners = "SELECT rowid >> 32 AS key FROM search_index WHERE search_index MATCH ? LIMIT ?";
  readonly #handle: SqliteHandle;
  #catching: Promise<void> = Promise.resolve();

  constructor(handle: SqliteHandle) {
    this.#handle = handle;
  }

  /** One after the other: the next finds done what the one before has done. */
  catchUp(): Promise<void> {
    const catching = this.#catching.then(() => this.#catchUp());
    this.#catching = catching.catch(() => {});
    return catching;
  }

  async #catchUp(): Promise<void> {
    settleDownTo(this.#handle, 0);
    this.#handle.exec(
      `CREATE VIRTUAL TABLE IF NOT EXISTS search_index USING
         fts5 (text, content = '', contentless_delete = 1, detail = none, tokenize = 'trigram case_sensitive 1')`,
    );
    const left = this.#handle.row<{ count: number | null }>(
      "SELECT sum(version - indexed) AS count FROM sessions WHERE indexed < version",
    );
    // Every part covers at least one entry or one session, so there cannot be more of them.
    for (let parts = left?.count ?? 0; parts > 0; parts--) {
      await nextSlice();
      if (!this.#handle.transaction(() => this.#indexPart())) return;
    }
  }

  /** Forgets a session's entries from a position on, and its id, name and working directory. Must be in a transaction. */
  removeFrom(key: number, position: number): void {
    if (!hasSearchIndex(this.#handle)) return;
    const sql = `DELETE FROM search_index WHERE rowid BETWEEN ${ROWID} AND ${ROWID}`;
    this.#handle.change(sql, [key, position, key, SEQ_MAX]);
  }

  /** Whether there is more to do. */
  #indexPart(): boolean {
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

  /** Adds entries while the budget lasts, and returns how far it came. */
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
