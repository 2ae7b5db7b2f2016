import { sameJson } from "../../internal/json.ts";
import { SessionError, show } from "../../session/errors.ts";
import type { Checkpoint } from "../../session/store.ts";

/** @throws {SessionError} `CHECKPOINT_EXISTS` when what is stored under a checkpoint's id is something else. */
export function checkCheckpointId(stored: Checkpoint | null, checkpoint: Checkpoint): void {
  if (stored !== null && sameJson(stored, checkpoint)) return;
  throw new SessionError(
    "CHECKPOINT_EXISTS",
    `There is already a checkpoint ${show(checkpoint.id)} with other content; use another id.`,
  );
}
