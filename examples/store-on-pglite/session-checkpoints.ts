import { isDeepStrictEqual } from "node:util";
import { type Checkpoint, SessionError, SessionNotFoundError } from "skein";
import { type Queries, select } from "./database.ts";

interface CheckpointRow {
  readonly body: string;
}

const ALL = "FROM skein.checkpoints JOIN skein.sessions ON key = session_key";
const LIVE = `${ALL} AND deleted_at IS NULL`;

/** The checkpoints of all sessions; those of a deleted one are hidden with it. */
export class SessionCheckpoints {
  readonly #queries: Queries;

  constructor(queries: Queries) {
    this.#queries = queries;
  }

  async save(checkpoint: Checkpoint): Promise<void> {
    const { id, sessionId, createdAt } = checkpoint;
    const body = JSON.stringify(checkpoint);
    const [answer] = await select<{ found: boolean; saved: boolean }>(
      this.#queries,
      `WITH session AS (SELECT key FROM skein.sessions WHERE id = $1 AND deleted_at IS NULL),
       saved AS (
         INSERT INTO skein.checkpoints (id, session_key, created_at, body) SELECT $2, key, $3, $4 FROM session
         ON CONFLICT (id) DO NOTHING RETURNING id
       )
       SELECT EXISTS (SELECT 1 FROM session) AS found, EXISTS (SELECT 1 FROM saved) AS saved`,
      [sessionId, id, createdAt, body],
    );
    if (answer?.found !== true) throw new SessionNotFoundError(sessionId);
    if (answer.saved) return;
    const sql = "SELECT body FROM skein.checkpoints WHERE id = $1";
    const [stored] = await select<CheckpointRow>(this.#queries, sql, [id]);
    if (stored !== undefined && isDeepStrictEqual(JSON.parse(stored.body), JSON.parse(body))) return;
    throw new SessionError(
      "CHECKPOINT_EXISTS",
      `There is already a checkpoint ${id} with other content; use another id.`,
    );
  }

  async load(id: string): Promise<Checkpoint | null> {
    const sql = `SELECT body ${LIVE} WHERE checkpoints.id = $1`;
    const [row] = await select<CheckpointRow>(this.#queries, sql, [id]);
    return row === undefined ? null : checkpointOf(row);
  }

  async list(sessionId: string, deleted: boolean): Promise<Checkpoint[]> {
    const from = deleted ? `${ALL} AND deleted_at IS NOT NULL` : LIVE;
    const sql = `SELECT body ${from} WHERE sessions.id = $1 ORDER BY created_at, sequence`;
    return (await select<CheckpointRow>(this.#queries, sql, [sessionId])).map(checkpointOf);
  }

  async delete(id: string): Promise<boolean> {
    const deleted = await select(
      this.#queries,
      `DELETE FROM skein.checkpoints WHERE sequence IN (SELECT sequence ${LIVE} WHERE checkpoints.id = $1) RETURNING id`,
      [id],
    );
    return deleted.length > 0;
  }
}

function checkpointOf({ body }: CheckpointRow): Checkpoint {
  return JSON.parse(body) as Checkpoint;
}
