import { entryText, type SearchTerm } from "../../session/search.ts";
import type { Entry } from "../../session/entry.ts";
import type { LogRange, Segment } from "../rows/segments.ts";
import type { SearchIndex as TextIndex } from "../sql/session-search.ts";
import { fromJsonb } from "./jsonb-text.ts";
import type { PostgresHandle, Transaction } from "./postgres-handle.ts";
import type { PostgresPort } from "./postgres-port.ts";
import { SEARCH_BLOCK_ENTRIES } from "./schema.ts";
import { type LoadedSession, SESSION_COLUMNS, type SessionRow } from "./session-row.ts";
import { addTrigrams, arrayOf, trigramsOf } from "./trigrams.ts";

const BATCH_SESSIONS = 50;
const BATCH_BLOCKS = 16;
const BATCHES_MAX = 1_000_000;
/** Stands for the session's own texts. */
const OWN_BLOCK = -1;

interface UnsearchedRow extends SessionRow {
  readonly searched: string;
}

interface IndexRow {
  readonly key: number;
  readonly block: number;
  readonly trigrams: string;
}

/**
 * An index of the trigrams of all messages, a block of entries at a time, and of every session's id, name and working
 * directory. Appends do not touch it; a search first adds what has come since. It holds no text, so that what it finds
 * is a candidate to be looked at.
 */
export class SearchIndex implements TextIndex {
  readonly #handle: PostgresHandle;
  readonly #port: PostgresPort;

  constructor(handle: PostgresHandle, port: PostgresPort) {
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

  keyOf(term: SearchTerm): string | null {
    return trigramsOf(term);
  }

  async ownersOf(trigrams: string, limit: number): Promise<Set<number> | null> {
    const rows = await this.#handle.rows<{ key: string }>(
      `SELECT DISTINCT session_key AS key FROM ${this.#handle.schema}.search_index
       WHERE trigrams @> $1::text::integer[] LIMIT $2`,
      [trigrams, limit + 1],
    );
    return rows.length > limit ? null : new Set(rows.map(({ key }) => Number(key)));
  }

  async *partsIn({ key, start, end }: Segment, terms: readonly string[]): AsyncGenerator<LogRange> {
    const any = terms.map((_, index) => `trigrams @> $${index + 4}::text::integer[]`).join(" OR ");
    const first = Math.floor(start / SEARCH_BLOCK_ENTRIES);
    const last = Math.floor((end - 1) / SEARCH_BLOCK_ENTRIES);
    const rows = await this.#handle.rows<{ block: string }>(
      `SELECT block FROM ${this.#handle.schema}.search_index
       WHERE session_key = $1 AND block BETWEEN $2 AND $3 AND (${any}) ORDER BY block`,
      [key, first, last, ...terms],
    );
    for (const { block } of rows) {
      const from = Number(block) * SEARCH_BLOCK_ENTRIES;
      yield { start: Math.max(start, from), end: Math.min(end, from + SEARCH_BLOCK_ENTRIES) };
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
      const { end, blocks } = await this.#blocksOf(transaction, row, budget);
      const session = row.id === null ? null : await this.#port.inside(transaction).sessionOf(row);
      await this.#write(transaction, session === null ? blocks : [ownTexts(session), ...blocks]);
      await transaction.change(`UPDATE ${schema}.sessions SET searched = $2, unsearched = $3 WHERE key = $1`, [
        Number(key),
        end,
        end < Number(row.version),
      ]);
      budget -= blocks.length;
      if (budget <= 0) return;
    }
  }

  /** The blocks of a session that are new or have grown, at most `budget` of them, and how far they go. */
  async #blocksOf(
    transaction: Transaction,
    row: UnsearchedRow,
    budget: number,
  ): Promise<{ readonly end: number; readonly blocks: readonly IndexRow[] }> {
    const key = Number(row.key);
    const version = Number(row.version);
    const searched = Number(row.searched);
    let block = Math.floor(searched / SEARCH_BLOCK_ENTRIES);
    const blocks: IndexRow[] = [];
    let end = searched;
    for (; end < version && blocks.length < budget; block++) {
      end = Math.min(version, (block + 1) * SEARCH_BLOCK_ENTRIES);
      const start = Math.max(Number(row.origin_version), block * SEARCH_BLOCK_ENTRIES);
      blocks.push({ key, block, trigrams: await this.#trigramsOf(transaction, { key, start, end }) });
    }
    return { end, blocks };
  }

  async #trigramsOf(transaction: Transaction, { key, start, end }: Segment): Promise<string> {
    const rows = await transaction.rows<{ body: string }>(
      `SELECT body::text AS body FROM ${this.#handle.schema}.entries
       WHERE session_key = $1 AND seq >= $2 AND seq < $3 AND body ->> 'type' IN ('message', 'custom_message')`,
      [key, start, end],
    );
    const trigrams = new Set<number>();
    for (const { body } of rows) addTrigrams(trigrams, entryText(fromJsonb(body) as Entry));
    return arrayOf(trigrams);
  }

  async #write(transaction: Transaction, rows: readonly IndexRow[]): Promise<void> {
    if (rows.length === 0) return;
    await transaction.change(
      `INSERT INTO ${this.#handle.schema}.search_index (session_key, block, trigrams)
       SELECT key, block, trigrams::integer[]
       FROM json_to_recordset($1::text::json) AS new (key bigint, block bigint, trigrams text)
       ON CONFLICT (session_key, block) DO UPDATE SET trigrams = excluded.trigrams`,
      [JSON.stringify(rows)],
    );
  }
}

function ownTexts({ key, head: { header, name } }: LoadedSession): IndexRow {
  const trigrams = new Set<number>();
  for (const text of [header.id, name, header.cwd]) if (text !== null) addTrigrams(trigrams, text);
  return { key, block: OWN_BLOCK, trigrams: arrayOf(trigrams) };
}
