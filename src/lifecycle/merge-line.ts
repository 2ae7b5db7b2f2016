import type { SessionStore } from "../session/store.ts";

const lines = new WeakMap<SessionStore, Map<string, Promise<void>>>();

/**
 * Does one thing after the other for a session of a store, in this process. Two merges of the same branch would both write
 * the same entries, which does no harm, but only one of them has appended them and may say so.
 */
export async function inLine<T>(store: SessionStore, sessionId: string, work: () => Promise<T>): Promise<T> {
  const line = lines.get(store) ?? new Map<string, Promise<void>>();
  lines.set(store, line);
  const working = (line.get(sessionId) ?? Promise.resolve()).then(work);
  const done = working.then(
    () => {},
    () => {},
  );
  line.set(sessionId, done);
  try {
    return await working;
  } finally {
    if (line.get(sessionId) === done) line.delete(sessionId);
  }
}
