import { SessionNotFoundError } from "../../session/errors.ts";
import type { Checkpoint } from "../../session/store.ts";
import type { CheckpointTable } from "../../session/store-driver.ts";
import { checkCheckpointId } from "../complete/valid-checkpoint.ts";
import type { SqlDatabase } from "./sql-database.ts";

type CheckpointRow = { readonly body: string };

/** The checkpoints of all sessions. The checkpoints of a deleted session are hidden. */
export class CheckpointRows implements CheckpointTable {
  readonly #database: SqlDatabase;
  readonly #table: string;
  /** SQL that selects the key of the session whose id is bound. */
  readonly #anyKey: string;
  /** SQL that selects the key of the live session whose id is bound. */
  readonly #key: string;
  /** SQL condition: the checkpoint's session is live. */
  readonly #isLive: string;

  constructor(database: SqlDatabase) {
    const { prefix } = database.dialect;
    this.#database = database;
    this.#table = `${prefix}checkpoints`;
    this.#anyKey = `SELECT key FROM ${prefix}sessions WHERE id = ?`;
    this.#key = `${this.#anyKey} AND deleted_at IS NULL`;
    this.#isLive = `EXISTS (SELECT 1 FROM ${prefix}sessions WHERE key = session_key AND deleted_at IS NULL)`;
  }

  async save(checkpoint: Checkpoint): Promise<void> {
    const { id, sessionId, createdAt } = checkpoint;
    // Locks the row of the session, so that no purge removes it before the checkpoint that refers to it is inserted.
    const locked = `${this.#key} ${this.#database.dialect.forUpdate}`;
    const saved = await this.#database.change(
      `INSERT INTO ${this.#table} (session_key, id, created_at, body)
       SELECT own.key, ?, ?, ? FROM (${locked}) AS own WHERE true ON CONFLICT (id) DO NOTHING`,
      [id, createdAt, JSON.stringify(checkpoint), sessionId],
    );
    if (saved > 0) return;
    if ((await this.#database.rows(this.#key, [sessionId])).length === 0) throw new SessionNotFoundError(sessionId);
    const [stored] = await this.#database.rows<CheckpointRow>(`SELECT body FROM ${this.#table} WHERE id = ?`, [id]);
    checkCheckpointId(stored === undefined ? null : checkpointOf(stored), checkpoint);
  }

  async load(id: string): Promise<Checkpoint | null> {
    const sql = `SELECT body FROM ${this.#table} WHERE id = ? AND ${this.#isLive}`;
    const [row] = await this.#database.rows<CheckpointRow>(sql, [id]);
    return row === undefined ? null : checkpointOf(row);
  }

  async list(sessionId: string, deleted: boolean): Promise<Checkpoint[]> {
    const key = deleted ? `${this.#anyKey} AND deleted_at IS NOT NULL` : this.#key;
    const sql = `SELECT body FROM ${this.#table} WHERE session_key = (${key}) ORDER BY created_at, sequence`;
    return (await this.#database.rows<CheckpointRow>(sql, [sessionId])).map(checkpointOf);
  }

  /** Overwrites a stored checkpoint. Returns false if its id is not stored or its session is deleted. */
  async replace(checkpoint: Checkpoint): Promise<boolean> {
    const sql = `UPDATE ${this.#table} SET body = ? WHERE id = ? AND ${this.#isLive}`;
    return (await this.#database.change(sql, [JSON.stringify(checkpoint), checkpoint.id])) > 0;
  }

  async delete(id: string): Promise<boolean> {
    return (await this.#database.change(`DELETE FROM ${this.#table} WHERE id = ? AND ${this.#isLive}`, [id])) > 0;
  }
}

function checkpointOf({ body }: CheckpointRow): Checkpoint {
  return JSON.parse(body) as Checkpoint;
}
