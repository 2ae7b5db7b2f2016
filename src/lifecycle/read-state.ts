import type { EntryOf } from "../session/log/entry.ts";
import type { SessionHead } from "../session/log/fold.ts";
import { type SessionState, type SessionTurn, stateOf, turnOf } from "../session/state/state.ts";
import type { SessionStore } from "../session/store.ts";
import { pathAt, readBranch } from "../tree/path-reader.ts";

/** Options for reading a state. */
export interface StateOptions {
  /** False leaves out the turns; the cost then does not depend on the session's length. */
  readonly turns?: boolean;
  /** False leaves out the latest checkpoint, which saves a read of the store. */
  readonly checkpoint?: boolean;
  /** Fails with `TOO_LARGE` if the turns have more characters in total. */
  readonly charactersMax?: number;
}

/** The state of a session at its leaf, or at another node (null: before the root). */
export async function readState(
  store: SessionStore,
  head: SessionHead,
  options: StateOptions & { readonly leafId?: string | null } = {},
): Promise<SessionState> {
  const { leafId = head.leafId } = options;
  const checkpoints = options.checkpoint === false ? [] : await store.listCheckpoints(head.header.id);
  const path = await pathAt(store, head, leafId);
  const settings = await store.settings(head.header.id, path);
  const turns = options.turns === false ? [] : await readTurns(store, head.header.id, leafId, options.charactersMax);
  return stateOf(head, settings, turns, { checkpointId: checkpoints.at(-1)?.id ?? null, leafId, path });
}

/** The turns on the path to a node, oldest first. */
export async function readTurns(
  store: SessionStore,
  sessionId: string,
  leafId: string | null,
  charactersMax?: number,
): Promise<readonly SessionTurn[]> {
  if (leafId === null) return [];
  const path = await readBranch(store, sessionId, leafId, charactersMax);
  return path.filter((entry): entry is EntryOf<"message"> => entry.type === "message").map(turnOf);
}
