import { checkOptionsOf, checkStoreArgument, type KeysOf } from "../session/check-arguments.ts";
import { defined } from "../internal/defined.ts";
import { listPages } from "../stores/complete/list-pages.ts";
import { type CallAnalytics, CallSamples } from "../session/state/call-samples.ts";
import type { Entry } from "../session/log/entry.ts";
import { firstSummed, type SessionHead } from "../session/log/fold.ts";
import { MergedTurns } from "../session/log/merged-turns.ts";
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
  checkStoreArgument(store, "callAnalytics");
  checkOptionsOf(query, { userId: true, from: true, to: true } satisfies KeysOf<CallQuery>, "callAnalytics");
  const { userId, from = "", to = "\uffff" } = checkAggregateQuery({ ...query, groupBy: [] });
  const samples = new CallSamples();
  const merged = new MergedTurns(store);
  let [sessions, left, complete] = [0, ENTRIES_MAX, true];
  for await (const { items } of listPages(store, { ...defined({ userId }), limit: PAGE })) {
    for (const head of items) {
      if (head.modifiedAt < from) return samples.sum({ sessions, complete });
      if (head.header.createdAt >= to) continue;
      if (sessions === SESSIONS_MAX || left <= 0) return samples.sum({ sessions, complete: false });
      const entries = await latestEntries({ store, merged }, head, Math.min(left, ENTRIES_MAX_EACH));
      sessions += 1;
      left -= entries.length;
      if ((entries[0]?.seq ?? 0) > firstSummed(head.header)) complete = false;
      samples.add(head, entries, (time) => time >= from && time < to);
    }
  }
  return samples.sum({ sessions, complete });
}

async function latestEntries(
  { store, merged }: { readonly store: SessionStore; readonly merged: MergedTurns },
  head: SessionHead,
  limit: number,
): Promise<readonly Entry[]> {
  const entries: Entry[] = [];
  const range = { after: firstSummed(head.header) - 1, limit, reverse: true };
  for await (const entry of store.read(head.header.id, range)) {
    entries.push((await merged.countHere(entry)) ? countedOf(entry) : uncountedOf(entry));
  }
  return entries.reverse();
}

/** Of an entry, what is counted: what was said need not be held for it. */
function countedOf(entry: Entry): Entry {
  const { id, parentId, seq, type, timestamp } = entry;
  const place = { id, parentId, seq, type, timestamp };
  if (entry.type === "run") return { ...place, runId: entry.runId, phase: entry.phase } as Entry;
  if (entry.type !== "message") return place as Entry;
  const { message } = entry;
  if (message.role !== "assistant") return { ...place, message: { ...message, content: "", metadata: {} } } as Entry;
  const { role, provider, model, stopReason, toolCalls = [] } = message;
  const named = toolCalls.map(({ name }) => ({ id: "", name, arguments: "" }));
  return {
    ...place,
    message: { role, content: "", toolCalls: named, ...defined({ provider, model, stopReason }) },
  } as Entry;
}

/** A merged turn: only when it was said, as what follows it may be measured from there. */
function uncountedOf({ id, parentId, seq, timestamp }: Entry): Entry {
  return { id, parentId, seq, timestamp, type: "custom", customType: "merged" } as Entry;
}
