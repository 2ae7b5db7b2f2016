const queues = new WeakMap<object, Map<string, Promise<void>>>();

/**
 * Runs one task at a time for each session of a store, in this process, in the order of the calls. Two merges of the same branch
 * would both write the same entries, which does no harm, but only one of them has appended them and may report that.
 */
export async function serialize<T>(store: object, sessionId: string, task: () => Promise<T>): Promise<T> {
  const queue = queues.get(store) ?? new Map<string, Promise<void>>();
  queues.set(store, queue);
  const result = (queue.get(sessionId) ?? Promise.resolve()).then(task);
  const settled = result.then(
    () => {},
    () => {},
  );
  queue.set(sessionId, settled);
  try {
    return await result;
  } finally {
    if (queue.get(sessionId) === settled) queue.delete(sessionId);
  }
}
