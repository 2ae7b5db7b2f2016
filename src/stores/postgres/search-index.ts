import { nextSlice } from "../../internal/long-work.ts";
import { entryText, type SearchTerm } from "../../session/search.ts";
import type { Entry } from "../../session/log/entry.ts";
import type { SearchIndex as TextIndex } from "../sql/session-search.ts";
import type { PostgresHandle, Transaction } from "./postgres-handle.ts";
import type { PostgresPort } from "./postgres-port.ts";
import { SEARCH_BLOCK_ENTRIES } from "./schema.ts";
import { SESSION_COLUMNS, type SessionRow } from "./session-row.ts";

const TRIGRAMS_OF_TERM_MAX = 24;
const BATCH_SESSIONS = 50;
const BATCH_BLOCKS = 16;
const BATCHES_MAX = 1_000_000;
/** The block number of the session's id, name and directory. */
const OWN_BLOCK = -1;

interface UnsearchedRow extends SessionRow {
  readonly searched: string;
}

/**
 * A full-text index (GIN) of the trigrams of all messages, one row per block of entries, and of every session's id, name and
 * working directory. Appends do not update it; each search first indexes what was appended since the last one. It stores no
 * text, so a hit is only a candidate that must be read.
 */
export class SearchIndex implements TextIndex {
  readonly keyOf: TextIndex["keyOf"] = trigramsOf;
  readonly owners: string;
  readonly #handle: PostgresHandle;
  readonly #port: PostgresPort;

  constructor(handle: PostgresHandle, port: PostgresPort) {
    this.owners = `SELECT DISTINCT session_key AS key FROM ${handle.schema}.search_index
      WHERE trigrams @> ?::text::integer[] LIMIT ?`;
    this.#handle = handle;
    this.#port = port;
  }

  async catchUp(): Promise<void> {
    for (let batch = 0; batch < BATCHES_MAX; batch++) {
      const [unsearched] = await this.#handle.rows(
        `SELECT 1 AS one FROM ${this.#handle.schema}.sessions WHERE unsearched LIMIT 1`,
      );
      if (unsearched === undefined) return;
      await this.#handle.transaction((transaction) => this.#indexBatch(transaction));
    }
  }

  async #indexBatch(transaction: Transaction): Promise<void> {
    const { schema } = this.#handle;
    // The lock serializes concurrent searches: each batch is indexed once, and no search runs before all are indexed.
    await transaction.rows("SELECT pg_advisory_xact_lock(hashtextextended($1::text, 2))", [`skein ${schema}`]);
    const found = await transaction.rows<{ key: string }>(
      `SELECT key FROM ${schema}.sessions WHERE unsearched ORDER BY key LIMIT ${BATCH_SESSIONS} FOR NO KEY UPDATE`,
    );
    let budget = BATCH_BLOCKS;
    for (const { key } of found) {
      // From here on, an append must mark the session again.
      const [row] = await transaction.rows<UnsearchedRow>(
        `UPDATE ${schema}.heads SET marked = false FROM ${schema}.sessions WHERE session_key = $1 AND key = $1
         RETURNING ${SESSION_COLUMNS}, searched`,
        [Number(key)],
      );
      if (row === undefined) continue;
      const session = row.id === null ? null : await this.#port.forTransaction(transaction).sessionOf(row);
      const { header, name } = session?.head ?? {};
      if (header !== undefined) await this.#put(transaction, row, OWN_BLOCK, [header.id, name ?? "", header.cwd ?? ""]);
      const version = Number(row.version);
      let end = Number(row.searched);
      for (; end < version && budget > 0; budget--) {
        const block = Math.floor(end / SEARCH_BLOCK_ENTRIES);
        end = Math.min(version, (block + 1) * SEARCH_BLOCK_ENTRIES);
        await this.#put(transaction, row, block, this.#textsOf(transaction, row, block));
      }
      const set = `UPDATE ${schema}.sessions SET searched = $2, unsearched = $3 WHERE key = $1`;
      await transaction.change(set, [Number(key), end, end < version]);
      if (budget === 0) return;
    }
  }

  /** The texts of a block, read a page at a time, since a block may be large. */
  async *#textsOf(transaction: Transaction, { key }: UnsearchedRow, block: number): AsyncGenerator<string> {
    const port = this.#port.forTransaction(transaction);
    const end = (block + 1) * SEARCH_BLOCK_ENTRIES;
    for (let start = block * SEARCH_BLOCK_ENTRIES; start < end; ) {
      const page = await port.page({ key: Number(key), start, end }, SEARCH_BLOCK_ENTRIES, false);
      if (page.length === 0) return;
      start += page.length;
      for (const body of page) yield entryText(JSON.parse(body) as Entry);
      await nextSlice();
    }
  }

  async #put(
    transaction: Transaction,
    row: UnsearchedRow,
    block: number,
    texts: Iterable<string> | AsyncIterable<string>,
  ): Promise<void> {
    const trigrams = new Set<number>();
    for await (const text of texts) addTrigrams(trigrams, text);
    await transaction.change(
      `INSERT INTO ${this.#handle.schema}.search_index (session_key, block, trigrams)
       VALUES ($1, $2, $3::text::integer[])
       ON CONFLICT (session_key, block) DO UPDATE SET trigrams = excluded.trigrams`,
      [Number(row.key), block, arrayOf(trigrams)],
    );
  }
}

/**
 * Adds a hash of every trigram of a text. Different trigrams may share a hash, which only adds candidates. The text is
 * converted to lower case, as a search compares it, so no match is missed.
 */
export function addTrigrams(hashes: Set<number>, text: string): void {
  const lower = text.toLowerCase();
  for (let end = 2; end < lower.length; end++) hashes.add(hashAt(lower, end));
}

/** The hashes that every text containing a term has, as an array literal; null for a term that can be found only by reading. */
export function trigramsOf(term: SearchTerm): string | null {
  if (term.type !== "text" || term.text.length < 3) return null;
  const count = term.text.length - 2;
  const step = Math.ceil(count / TRIGRAMS_OF_TERM_MAX);
  const hashes = new Set<number>();
  for (let start = 0; start < count; start += step) hashes.add(hashAt(term.text, start + 2));
  return arrayOf(hashes);
}

/** Numbers as an array literal of PostgreSQL. */
function arrayOf(numbers: Iterable<number>): string {
  return `{${[...numbers].join(",")}}`;
}

/** A hash of the trigram that ends at an index. */
function hashAt(text: string, end: number): number {
  const [first, second, third] = [text.charCodeAt(end - 2), text.charCodeAt(end - 1), text.charCodeAt(end)];
  return (Math.imul(Math.imul(first, 0x9e3779b1) + second, 0x85ebca6b) + third) | 0;
}
