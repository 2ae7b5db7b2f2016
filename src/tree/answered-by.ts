import { LruCache } from "../internal/lru-cache.ts";
import type { Entry } from "../session/log/entry.ts";
import type { SessionHead } from "../session/log/fold.ts";
import type { SessionStore } from "../session/store.ts";

/** Which models have answered in a session, on any of its branches. */
export interface AnsweredBy {
  /** Whether any model except the offline model has answered, including one that the log does not name. */
  readonly byAnother: boolean;
  /** The model to continue with, as `provider/id`; null if none has answered, or the log does not name the one that has. */
  readonly model: string | null;
}

/** For how many sessions of a store it is remembered how far no other model has answered. */
const SESSIONS_MAX = 1000;

/** By store and session, the version up to which only the offline model has answered. */
const offlineUpTo = new WeakMap<SessionStore, LruCache<string, number>>();

/**
 * Finds out which models have answered in a session. The offline model is returned only if no other has answered, so that it
 * does not become the default of a session that used another model. Reads the log if the head is not enough; of a session that
 * only the offline model answers, each entry once.
 */
export async function answeredBy(store: SessionStore, head: SessionHead): Promise<AnsweredBy> {
  const { model } = head.path;
  if (model !== null && !OFFLINE.has(model.provider))
    return { byAnother: true, model: `${model.provider}/${model.modelId}` };
  const other = await lastByAnother(store, head);
  if (other === null) return { byAnother: false, model: model === null ? null : "offline/offline" };
  const { provider, model: id } = other;
  return { byAnother: true, model: provider === undefined || id === undefined ? null : `${provider}/${id}` };
}

/** The providers of answers that do not come from a real model: the offline model, and the sample sessions. */
const OFFLINE: ReadonlySet<string | undefined> = new Set(["offline", "sample"]);

type Answer = Extract<Extract<Entry, { type: "message" }>["message"], { role: "assistant" }>;

/** The last answer in the log that is not by the offline model; null if there is none. */
async function lastByAnother(store: SessionStore, { header, version }: SessionHead): Promise<Answer | null> {
  const known = offlineUpTo.get(store) ?? new LruCache(SESSIONS_MAX);
  offlineUpTo.set(store, known);
  // A deleted session may come back under its id.
  const key = `${header.id} ${header.createdAt}`;
  const after = (known.get(key) ?? 0) - 1;
  for await (const entry of store.read(header.id, { after, before: version, reverse: true })) {
    if (entry.type !== "message" || entry.message.role !== "assistant") continue;
    if (!OFFLINE.has(entry.message.provider)) return entry.message;
  }
  known.set(key, version);
  return null;
}
