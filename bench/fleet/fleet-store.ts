import type { SessionManager, SessionStore } from "skein";
import { openPostgresStore } from "skein/postgres";
import { openRedisStore } from "skein/redis";
import type { RunQueue } from "skein/workers";

/** The agent of all runs. */
export const RUNNER = "talker";
/** The maximum number of parallel requests. */
const AT_ONCE = 64;

/** The store of a fleet: the same prefix gives the same sessions in all processes. */
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

/** Requests a run of each session and notifies the queue, as a server does. */
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

/** Runs an action for each item, some in parallel. */
export async function atOnce<Item>(items: readonly Item[], act: (item: Item) => Promise<void>): Promise<void> {
  const left = items.values();
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (const item of left) await act(item);
    }),
  );
}
