import type { SessionHeader } from "../session/header.ts";
import { PAGE_ITEMS_MAX } from "../session/limits.ts";
import type { SessionStore } from "../session/store.ts";

const CHECKPOINT_EXTRA = "fork.checkpoint";

/** What a fork's lineage says about the checkpoint that it was made from. */
export function checkpointExtra(checkpointId: string): readonly [string, string] {
  return [CHECKPOINT_EXTRA, checkpointId];
}

/** The checkpoints of a session that its live forks were made from. */
export async function forkedCheckpoints(store: SessionStore, sessionId: string): Promise<ReadonlySet<string>> {
  const ids = new Set<string>();
  let cursor: string | null = null;
  do {
    const page: Awaited<ReturnType<SessionStore["list"]>> = await store.list({
      parentId: sessionId,
      limit: PAGE_ITEMS_MAX,
      ...(cursor === null ? {} : { cursor }),
    });
    for (const { header } of page.items) {
      const id = checkpointOf(header);
      if (id !== null) ids.add(id);
    }
    cursor = page.next;
  } while (cursor !== null);
  return ids;
}

function checkpointOf({ lineage }: SessionHeader): string | null {
  const value = lineage.extras.find(([key]) => key === CHECKPOINT_EXTRA)?.[1];
  return typeof value === "string" ? value : null;
}
