import { sameJson } from "../../internal/json.ts";
import { SessionError, SessionNotFoundError, show } from "../../session/errors.ts";
import type { Checkpoint } from "../../session/store.ts";
import type { SqliteHandle } from "./sqlite-handle.ts";

interface CheckpointRow {
  readonly body: string;
}

/** The checkpoints of all sessions; those of a deleted one are hidden with it. */
export class CheckpointRows {
  readonly #handle: SqliteHandle;

  constructor(handle: SqliteHandle) {
    this.#handle = handle;
  }

  save(checkpoint: Checkpoint): void {
    this.#handle.transaction(() => {
      const { id, sessionId, createdAt } = checkpoint;
      const session = this.#handle
        .prepare("SELECT key FROM sessions WHERE id = ? AND deleted_at IS NULL")
        .get<{ key: number }>([sessionId]);
      if (session === undefined) throw new SessionNotFoundError(sessionId);
      const stored = this.#handle.prepare("SELECT body FROM checkpoints WHERE id = ?").get<CheckpointRow>([id]);
      if (stored === undefined) {
        this.#handle
          .prepare("INSERT INTO checkpoints (id, session_key, created_at, body) VALUES (?, ?, ?, ?)")
          .run([id, session.key, createdAt, JSON.stringify(checkpoint)]);
      } else if (!sameJson(checkpointOf(stored), checkpoint)) {
        throw new SessionError(
          "CHECKPOINT_EXISTS",
          `There is already a checkpoint ${show(id)} with other content; use another id.`,
        );
      }
    });
  }

  load(id: string): Checkpoint | null {
    const row = this.#handle
      .prepare(
        `SELECT body FROM checkpoints WHERE id = ?
           AND EXISTS (SELECT 1 FROM sessions WHERE key = session_key AND deleted_at IS NULL)`,
      )
      .get<CheckpointRow>([id]);
    return row === undefined ? null : checkpointOf(row);
  }

  list(sessionId: string): Checkpoint[] {
    return this.#handle
      .prepare(
        `SELECT body FROM checkpoints WHERE session_key = (SELECT key FROM sessions WHERE id = ? AND deleted_at IS NULL)
         ORDER BY created_at, sequence`,
      )
      .all<CheckpointRow>([sessionId])
      .map(checkpointOf);
  }

  delete(id: string): boolean {
    const changes = this.#handle
      .prepare(
        `DELETE FROM checkpoints WHERE id = ?
           AND EXISTS (SELECT 1 FROM sessions WHERE key = session_key AND deleted_at IS NULL)`,
      )
      .run([id]);
    return changes > 0;
  }
}

function checkpointOf({ body }: CheckpointRow): Checkpoint {
  return JSON.parse(body) as Checkpoint;
}
