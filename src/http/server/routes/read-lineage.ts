import { SessionCapacityError } from "../../../session/errors.ts";
import type { SessionHead } from "../../../session/log/fold.ts";
import type { Lineage } from "../../../session/log/header.ts";
import type { Usage } from "../../../session/usage.ts";
import { ownSpending } from "../../../tree/own-spending.ts";
import type { Caller, ServerServices } from "../server-services.ts";

/** How many sessions one lineage may have. */
const SESSIONS_MAX = 2000;

/** A session of a lineage, with what it spent itself: what a fork took over counts where it was spent. */
export interface LineageSession {
  readonly id: string;
  readonly lineage: Lineage;
  readonly head: SessionHead;
  readonly transcript: { readonly length: number };
  readonly usage: Usage;
  readonly cost: number;
}

/**
 * The sessions that one came from and that came from it, with what those came from too, as far as the caller may see them. A parent that they may not see,
 * or that is not there any more, is only named by its children.
 *
 * @throws {SessionCapacityError} when there are too many.
 */
export async function readLineage(
  { manager, store }: ServerServices,
  start: SessionHead,
  caller: Caller,
): Promise<LineageSession[]> {
  const as = { actor: caller };
  const found = new Map([[start.header.id, start]]);
  const add = (head: SessionHead): void => {
    if (found.size >= SESSIONS_MAX) throw new SessionCapacityError("sessions in one lineage", SESSIONS_MAX);
    found.set(head.header.id, head);
  };
  // A map that grows while it is walked is a queue.
  const addAncestors = async (): Promise<void> => {
    for (const { header } of found.values()) {
      for (const parentId of header.lineage.parents) {
        const parent = found.has(parentId) ? null : await manager.head(parentId, as);
        if (parent !== null) add(parent);
      }
    }
  };
  // Up to where it began, from there down, and up again: what came from it may have come from others too.
  await addAncestors();
  for (const { header } of found.values()) {
    let cursor: string | null = null;
    do {
      const page = await manager.list({ parentId: header.id, limit: 1000, ...(cursor === null ? {} : { cursor }) }, as);
      for (const child of page.items) if (!found.has(child.header.id)) add(child);
      cursor = page.next;
    } while (cursor !== null);
  }
  await addAncestors();
  const sessions: LineageSession[] = [];
  for (const head of found.values()) {
    const { header, path } = head;
    const { usage, cost } = (await ownSpending(store, head)) ?? head;
    sessions.push({
      id: header.id,
      lineage: header.lineage,
      head,
      transcript: { length: path.turnCount },
      usage,
      cost,
    });
  }
  return sessions;
}
