import { copyJson, NotJson, sameJson } from "../../internal/json.ts";
import { SessionError, show } from "../../session/errors.ts";
import { isTimestamp } from "../../session/log/header.ts";
import { checkName, checkSessionId } from "../../session/id.ts";
import { ENTRY_BYTES_MAX } from "../../session/limits.ts";
import type { Checkpoint } from "../../session/store.ts";

const FIELDS = "id sessionId version leafId createdAt parentCheckpointId metadata by sandboxSnapshot".split(" ");

/**
 * Checks every field of a checkpoint and returns a frozen copy.
 *
 * @throws {SessionError} `INVALID_ID`, `INVALID_VALUE` or `TOO_LARGE`.
 */
export function checkCheckpoint(value: Checkpoint): Checkpoint {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw invalidCheckpoint("it is not an object");
  const checkpoint = copy(value);
  const { id, sessionId, version, leafId, createdAt, parentCheckpointId, metadata, by } = checkpoint;
  checkName(id, "a checkpoint");
  checkSessionId(sessionId);
  if (!Number.isSafeInteger(version) || version < 0)
    throw invalidCheckpoint(`version is ${show(version)}, not a count of entries`);
  if (leafId !== null) checkName(leafId, "an entry");
  if (!isTimestamp(createdAt))
    throw invalidCheckpoint(`createdAt is ${show(createdAt)}, not an ISO-8601 time with milliseconds, in UTC`);
  if (parentCheckpointId !== null) checkName(parentCheckpointId, "a checkpoint");
  if (by !== undefined) checkName(by, "a user");
  if (typeof metadata !== "object" || metadata === null || Array.isArray(metadata))
    throw invalidCheckpoint("metadata is not an object");
  const name = Object.keys(checkpoint).find((field) => !FIELDS.includes(field));
  if (name !== undefined)
    throw invalidCheckpoint(`it has an unknown field ${show(name)}; keep your own data in metadata`);
  return checkpoint;
}

/** @throws {SessionError} `CHECKPOINT_EXISTS` unless the stored checkpoint equals the new one. */
export function checkCheckpointId(stored: Checkpoint | null, checkpoint: Checkpoint): void {
  if (stored !== null && sameJson(stored, checkpoint)) return;
  throw new SessionError(
    "CHECKPOINT_EXISTS",
    `There is already a checkpoint ${show(checkpoint.id)} with other content; use another id.`,
  );
}

/** Sorts checkpoints by time, the oldest first. The sort is stable. */
export function oldestFirst(checkpoints: readonly Checkpoint[]): Checkpoint[] {
  return [...checkpoints].sort((a, b) => (a.createdAt === b.createdAt ? 0 : a.createdAt < b.createdAt ? -1 : 1));
}

function copy(value: Checkpoint): Checkpoint {
  try {
    const checkpoint = copyJson(value, "checkpoint") as unknown as Checkpoint;
    if (JSON.stringify(checkpoint).length > ENTRY_BYTES_MAX) {
      throw new SessionError(
        "TOO_LARGE",
        `The checkpoint is larger than ${ENTRY_BYTES_MAX} bytes; keep large values elsewhere.`,
      );
    }
    return checkpoint;
  } catch (error) {
    if (error instanceof NotJson) throw new SessionError("INVALID_VALUE", `${error.message}.`, { cause: error });
    throw error;
  }
}

function invalidCheckpoint(problem: string): SessionError {
  return new SessionError("INVALID_VALUE", `The checkpoint is not valid: ${problem}.`);
}
