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
/** Stands for the session's own texts. */
const OWN_BLOCK = -1;

interface UnsearchedRow extends SessionRow {
  readonly searched: string;
}

/**
 * An index of the trigrams of all messages, a block of entries at a time, and of every session's id, name and working
 * directory. Appends do not touch it; a search first adds what has come since. It holds no text, so that what it finds
 * is a candidate to be looked at.
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
      const [waiting] = await this.#handle.rows(
        `SELECT 1 AS one FROM ${this.#handle.schema}.sessions WHERE unsearched LIMIT 1`,
      );
      if (waiting === undefined) return;
      await this.#handle.transaction((transaction) => this.#indexPart(transaction));
    }
  }

  async #indexPart(transaction: Transaction): Promise<void> {
    const { schema } = this.#handle;
    // Two that search at once share the work, and neither looks before it is done.
    await transaction.rows("SELECT pg_advisory_xact_lock(hashtextextended($1::text, 2))", [`skein ${schema}`]);
    const found = await transaction.rows<{ key: string }>(
      `SELECT key FROM ${schema}.sessions WHERE unsearched ORDER BY key LIMIT ${BATCH_SESSIONS} FOR NO KEY UPDATE`,
    );
    let budget = BATCH_BLOCKS;
    for (const { key } of found) {
      // Whoever appends from now on has to mark the session again.
      const [row] = await transaction.rows<UnsearchedRow>(
        `UPDATE ${schema}.heads SET marked = false FROM ${schema}.sessions WHERE session_key = $1 AND key = $1
         RETURNING ${SESSION_COLUMNS}, searched`,
        [Number(key)],
      );
      if (row === undefined) continue;
      const session = row.id === null ? null : await this.#port.inside(transaction).sessionOf(row);
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

  /** Entry by entry, a page at a time: a block of them may be large. */
  async *#textsOf(transaction: Transaction, { key }: UnsearchedRow, block: number): AsyncGenerator<string> {
    const port = this.#port.inside(transaction);
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
 * Adds a number for every three characters of a text that follow each other. Different ones may share a number, and the
 * text is taken in lower case as a search compares it, so that nothing that matches is ever missed.
 */
export function addTrigrams(numbers: Set<number>, text: string): void {
  const lower = text.toLowerCase();
  for (let end = 2; end < lower.length; end++) numbers.add(numberAt(lower, end));
}

/** The numbers that every text containing a term has; null for a term that only reading can find. */
export function trigramsOf(term: SearchTerm): string | null {
  if (term.type !== "text" || term.text.length < 3) return null;
  const count = term.text.length - 2;
  const step = Math.ceil(count / TRIGRAMS_OF_TERM_MAX);
  const numbers = new Set<number>();
  for (let start = 0; start < count; start += step) numbers.add(numberAt(term.text, start + 2));
  return arrayOf(numbers);
}

/** Numbers as PostgreSQL writes an array. */
export function arrayOf(numbers: Iterable<number>): string {
  return `{${[...numbers].join(",")}}`;
}

function numberAt(text: string, end: number): number {
  const [first, second, third] = [text.charCodeAt(end - 2), text.charCodeAt(end - 1), text.charCodeAt(end)];
  return (Math.imul(Math.imul(first, 0x9e3779b1) + second, 0x85ebca6b) + third) | 0;
}
