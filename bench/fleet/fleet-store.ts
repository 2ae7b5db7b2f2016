import type { SessionManager, SessionStore } from "skein";
import { openPostgresStore } from "skein/postgres";
import { openRedisStore } from "skein/redis";
import type { RunQueue } from "skein/workers";

/** The agent that all runs are for. */
export const RUNNER = "talker";
/** As many requests as a server would have in hand at once. */
const AT_ONCE = 64;

/** The sessions of a fleet: those of one prefix are the same in all processes. */
export function openFleetStore(url: string, prefix: string): Promise<SessionStore> {
  return url.startsWith("redis") ? openRedisStore({ url, prefix }) : openPostgresStore({ url, schema: prefix });
}

/** Makes sessions, each of another user, and resolves to their ids. */
export async function makeSessions(manager: SessionManager, count: number): Promise<string[]> {
  const ids: string[] = [];
  await atOnce(
    Array.from({ length: count }, (_, index) => index),
    async (index) => {
      ids.push((await manager.create({ userId: `user-${index}` })).sessionId);
    },
  );
  return ids;
}

/** Asks for a run of each session and notifies about it, as a server does. */
export async function requestRuns(
  manager: SessionManager,
  queue: RunQueue,
  sessionIds: readonly string[],
): Promise<void> {
  await atOnce(sessionIds, async (id) => {
    await manager.request(id, { agent: RUNNER, input: "Hello." });
    await queue.notify(id, { runner: RUNNER });
  });
}

/** Does something for each item, some of them at a time. */
export async function atOnce<Item>(items: readonly Item[], act: (item: Item) => Promise<void>): Promise<void> {
  const left = items.values();
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (const item of left) await act(item);
    }),
  );
}
