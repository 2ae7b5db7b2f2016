import { statusError } from "../../session/log/append-guard.ts";
import { CheckpointNotFoundError } from "../../session/errors.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import type { Sandbox } from "../../session/sandbox/sandbox.ts";
import type { SessionStore } from "../../session/store.ts";
import { type ActorOptions, byOf, viewerOf } from "../access.ts";
import type { ManagedSessions } from "../managed-sessions.ts";
import type { CheckpointManager } from "./checkpoint-manager.ts";

/** What going back needs of its manager. */
export interface GoBackParts {
  readonly store: SessionStore;
  readonly sessions: ManagedSessions;
  readonly checkpoints: CheckpointManager;
}

/** Moves a session's leaf to where a checkpoint stands, and gives a sandbox its files back; the head afterwards. */
export async function goBack(
  { store, sessions, checkpoints }: GoBackParts,
  checkpointId: string,
  options: ActorOptions & { readonly sandbox?: Sandbox },
): Promise<SessionHead> {
  viewerOf(options);
  const checkpoint = await store.loadCheckpoint(checkpointId);
  const found = checkpoint === null ? null : await sessions.find(checkpoint.sessionId, options);
  if (checkpoint === null || found === null) throw new CheckpointNotFoundError(checkpointId);
  const { status } = await sessions.expiry.settle(found);
  const { sessionId, leafId } = checkpoint;
  if (status !== "active") throw statusError(sessionId, status);
  const { sandbox } = options;
  // The files first: when they cannot be brought back, the conversation stays where it is, too.
  if (sandbox !== undefined) await checkpoints.restore(checkpointId, { sandbox, turns: false });
  const draft = { type: "leaf", targetId: leafId } as const;
  return (await store.append(sessionId, [draft], { guard: { status: "active" }, ...byOf(options) })).head;
}
