import { sameJson } from "../../internal/json.ts";
import { SessionError, SessionNotFoundError, show } from "../../session/errors.ts";
import type { Checkpoint } from "../../session/store.ts";
import type { PostgresHandle } from "./postgres-handle.ts";
import { IS_LIVE } from "./session-row.ts";

interface CheckpointRow {
  readonly body: string;
}

/** The checkpoints of all sessions; those of a deleted one are hidden with it. */
export class CheckpointRows {
  readonly #handle: PostgresHandle;

  constructor(handle: PostgresHandle) {
    this.#handle = handle;
  }

  async save(checkpoint: Checkpoint): Promise<void> {
    const { id, sessionId, createdAt } = checkpoint;
    const { schema } = this.#handle;
    const body = JSON.stringify(checkpoint);
    const [saved] = await this.#handle.write<{ there: boolean; saved: boolean }>(
      `WITH session AS (
         SELECT key FROM ${schema}.sessions WHERE id = $1 AND ${IS_LIVE} FOR KEY SHARE
       ), saved AS (
         INSERT INTO ${schema}.checkpoints (id, session_key, created_at, body)
         SELECT $2, key, $3, $4 FROM session ON CONFLICT (id) DO NOTHING RETURNING id
       )
       SELECT EXISTS (SELECT 1 FROM session) AS there, EXISTS (SELECT 1 FROM saved) AS saved`,
      [sessionId, id, createdAt, body],
    );
    if (saved?.there !== true) throw new SessionNotFoundError(sessionId);
    if (saved.saved) return;
    const [stored] = await this.#handle.read<CheckpointRow>(`SELECT body FROM ${schema}.checkpoints WHERE id = $1`, [
      id,
    ]);
    if (stored !== undefined && sameJson(checkpointOf(stored), checkpoint)) return;
    throw new SessionError(
      "CHECKPOINT_EXISTS",
      `There is already a checkpoint ${show(id)} with other content; use another id.`,
    );
  }

  async load(id: string): Promise<Checkpoint | null> {
    const { schema } = this.#handle;
    const [row] = await this.#handle.read<CheckpointRow>(
      `SELECT body FROM ${schema}.checkpoints JOIN ${schema}.sessions ON key = session_key
       WHERE checkpoints.id = $1 AND ${IS_LIVE}`,
      [id],
    );
    return row === undefined ? null : checkpointOf(row);
  }

  async list(sessionId: string): Promise<Checkpoint[]> {
    const { schema } = this.#handle;
    const rows = await this.#handle.read<CheckpointRow>(
      `SELECT body FROM ${schema}.checkpoints JOIN ${schema}.sessions ON key = session_key
       WHERE sessions.id = $1 AND ${IS_LIVE} ORDER BY created_at, sequence`,
      [sessionId],
    );
    return rows.map(checkpointOf);
  }

  async delete(id: string): Promise<boolean> {
    const { schema } = this.#handle;
    const rows = await this.#handle.write(
      `DELETE FROM ${schema}.checkpoints USING ${schema}.sessions
       WHERE checkpoints.id = $1 AND key = session_key AND ${IS_LIVE} RETURNING sequence`,
      [id],
    );
    return rows.length > 0;
  }
}

function checkpointOf({ body }: CheckpointRow): Checkpoint {
  return JSON.parse(body) as Checkpoint;
}
