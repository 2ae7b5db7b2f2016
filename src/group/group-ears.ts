import { listenTo } from "../agent/persist/run-ears.ts";
import type { Entry } from "../session/entry.ts";
import type { SessionStore } from "../session/store.ts";

/** Tells a group at work what others append to its session from a position on, in order, once each; the answer ends it. */
export function listenIn(
  store: SessionStore,
  sessionId: string,
  from: number,
  hear: (entry: Entry) => void,
): () => void {
  let heard = from;
  const take = (entry: Entry): void => {
    if (entry.seq < heard) return;
    heard = entry.seq + 1;
    if (entry.inherited !== true) hear(entry);
  };
  return listenTo({
    store,
    sessionId,
    get heard() {
      return heard;
    },
    hear: take,
    async look() {
      for await (const entry of store.read(sessionId, { after: heard - 1 })) take(entry);
    },
  });
}
