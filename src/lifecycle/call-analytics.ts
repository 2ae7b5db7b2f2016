import { defined } from "../internal/defined.ts";
import { listPages } from "../stores/complete/list-pages.ts";
import { type CallAnalytics, CallSamples } from "../session/state/call-samples.ts";
import type { Entry } from "../session/log/entry.ts";
import { firstSummed, type SessionHead } from "../session/log/fold.ts";
import type { SessionStore } from "../session/store.ts";
import { checkAggregateQuery } from "../stores/complete/valid-query.ts";

/** The most sessions that are looked at, the latest first. */
const SESSIONS_MAX = 1000;
/** The most entries that are read in all, and of one session. */
const ENTRIES_MAX = 20_000;
const ENTRIES_MAX_EACH = 4000;
const PAGE = 100;

/** Which sessions, and which of their turns, to look at. */
export interface CallQuery {
  readonly userId?: string;
  /** Turns from this time on (inclusive). */
  readonly from?: string;
  /** Turns before this time (exclusive). */
  readonly to?: string;
}

/**
 * The latency of models and the tools that were called, read from the latest sessions: at most 1,000 of them and 20,000
 * of their entries, so that the cost does not grow with the store.
 *
 * An answer counts that a run got: from what it answers, or from the start of the run where that is later, to when it was
 * put on record. Turns that a caller wrote have no latency. What a fork took over counts in its source.
 *
 * @throws {SessionError} `INVALID_QUERY` or `INVALID_ID` for a query that makes no sense.
 */
export async function callAnalytics(store: SessionStore, query: CallQuery = {}): Promise<CallAnalytics> {
  const { userId, from = "", to = "\uffff" } = checkAggregateQuery({ ...query, groupBy: [] });
  const samples = new CallSamples();
  let [sessions, left, complete] = [0, ENTRIES_MAX, true];
  for await (const { items } of listPages(store, { ...defined({ userId }), limit: PAGE })) {
    for (const head of items) {
      if (head.modifiedAt < from) return samples.sum({ sessions, complete });
      if (head.header.createdAt >= to) continue;
      if (sessions === SESSIONS_MAX || left <= 0) return samples.sum({ sessions, complete: false });
      const entries = await latestEntries(store, head, Math.min(left, ENTRIES_MAX_EACH));
      sessions += 1;
      left -= entries.length;
      if ((entries[0]?.seq ?? 0) > firstSummed(head.header)) complete = false;
      samples.add(head, entries, (time) => time >= from && time < to);
    }
  }
  return samples.sum({ sessions, complete });
}

async function latestEntries(store: SessionStore, head: SessionHead, limit: number): Promise<readonly Entry[]> {
  const entries: Entry[] = [];
  const range = { after: firstSummed(head.header) - 1, limit, reverse: true };
  for await (const entry of store.read(head.header.id, range)) entries.push(entry);
  return entries.reverse();
}
