import type { SessionHeader } from "../../session/log/header.ts";
import type { SessionStore } from "../../session/store.ts";
import { listPages } from "../../stores/complete/list-pages.ts";

const CHECKPOINT_EXTRA = "fork.checkpoint";

/** What a fork's lineage says about the checkpoint that it was made from. */
export function checkpointExtra(checkpointId: string): readonly [string, string] {
  return [CHECKPOINT_EXTRA, checkpointId];
}

/** The checkpoints of a session that its live forks were made from. */
export async function forkedCheckpoints(store: SessionStore, sessionId: string): Promise<ReadonlySet<string>> {
  const ids = new Set<string>();
  for await (const { items } of listPages(store, { parentId: sessionId })) {
    for (const { header } of items) {
      const id = checkpointOf(header);
      if (id !== null) ids.add(id);
    }
  }
  return ids;
}

function checkpointOf({ lineage }: SessionHeader): string | null {
  const value = lineage.extras.find(([key]) => key === CHECKPOINT_EXTRA)?.[1];
  return typeof value === "string" ? value : null;
}
