import type { LedgerHour, LedgerPage, LedgerTable } from "../../session/ledger.ts";
import { waitFor } from "../rows/coroutine.ts";
import type { SqlDatabase } from "./sql-database.ts";

/** The ledger of budgets in two tables. */
export class LedgerRows implements LedgerTable {
  readonly #database: SqlDatabase;
  readonly #pages: string;
  readonly #hours: string;

  constructor(database: SqlDatabase) {
    this.#database = database;
    this.#pages = `${database.dialect.prefix}spending`;
    this.#hours = `${database.dialect.prefix}spending_hours`;
  }

  async read(userId: string): Promise<LedgerPage | null> {
    const sql = `SELECT stamp, page AS text FROM ${this.#pages} WHERE user_id = ?`;
    const [page = null] = await this.#database.rows<LedgerPage>(sql, [userId]);
    return page === null ? null : { stamp: page.stamp, text: page.text };
  }

  async replace(
    userId: string,
    expected: string | null,
    { stamp, text }: LedgerPage,
    ended: LedgerHour | null,
  ): Promise<boolean> {
    const [sql, values] =
      expected === null
        ? [
            `INSERT INTO ${this.#pages} (user_id, stamp, page) VALUES (?, ?, ?) ON CONFLICT (user_id) DO NOTHING`,
            [userId, stamp, text],
          ]
        : [
            `UPDATE ${this.#pages} SET stamp = ?, page = ? WHERE user_id = ? AND stamp = ?`,
            [stamp, text, userId, expected],
          ];
    // Almost always one statement: an hour ends once an hour.
    if (ended === null) return (await this.#database.change(sql, values)) > 0;
    const add = `INSERT INTO ${this.#hours} (user_id, hour, total_tokens, cost) VALUES (?, ?, ?, ?)
      ON CONFLICT (user_id, hour) DO NOTHING`;
    return this.#database.transact(function* (transaction) {
      if ((yield* waitFor(transaction.change(sql, values))) === 0) return false;
      yield* waitFor(transaction.change(add, [userId, ended.hour, ended.totalTokens, ended.cost]));
      return true;
    });
  }

  async hourBefore(userId: string, before: number): Promise<LedgerHour | null> {
    const [row] = await this.#database.rows<{ hour: number | string; tokens: number | string; cost: number }>(
      `SELECT hour, total_tokens AS tokens, cost FROM ${this.#hours} WHERE user_id = ? AND hour < ?
       ORDER BY hour DESC LIMIT 1`,
      [userId, before],
    );
    return row === undefined
      ? null
      : { hour: Number(row.hour), totalTokens: Number(row.tokens), cost: Number(row.cost) };
  }

  async erase(userId: string): Promise<void> {
    const tables = [this.#pages, this.#hours];
    await this.#database.transact(function* (transaction) {
      for (const table of tables)
        yield* waitFor(transaction.change(`DELETE FROM ${table} WHERE user_id = ?`, [userId]));
    });
  }
}
