import { checkOptionsOf, checkStoreArgument, type KeysOf } from "../session/check-arguments.ts";
import { defined } from "../internal/defined.ts";
import { listPages } from "../stores/complete/list-pages.ts";
import { type CallAnalytics, CallSamples } from "../session/state/call-samples.ts";
import type { Entry } from "../session/log/entry.ts";
import { firstSummed, type SessionHead } from "../session/log/fold.ts";
import { MergedTurns } from "../session/log/merged-turns.ts";
import type { SessionStore } from "../session/store.ts";
import { checkAggregateQuery } from "../stores/complete/valid-query.ts";

/** The most sessions that are read, the latest first. */
const SESSIONS_MAX = 1000;
/** The most entries that are read, overall and of one session. */
const ENTRIES_MAX = 20_000;
const ENTRIES_MAX_EACH = 4000;
const PAGE = 100;

/** Which sessions, and which of their turns, to measure. */
export interface CallQuery {
  readonly userId?: string;
  /** Turns from this time on (inclusive). */
  readonly from?: string;
  /** Turns before this time (exclusive). */
  readonly to?: string;
}

/**
 * Measures the latency of models and counts the tool calls, in the latest sessions: at most 1,000 sessions and 20,000 of their
 * entries, so that the cost does not grow with the store.
 *
 * Answers of runs count. The latency of an answer is the time from the message that it answers, or from the start of the run if
 * that is later, until the answer is recorded. Turns written by a caller have no latency. Turns inherited by a fork count in
 * their source.
 *
 * @throws {SessionError} `INVALID_QUERY` or `INVALID_ID` for an invalid query.
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

/** Reduces an entry to the fields that are counted, so that its text is not kept in memory. */
function countedOf(entry: Entry): Entry {
  const { id, parentId, seq, type, timestamp } = entry;
  const stamp = { id, parentId, seq, type, timestamp };
  if (entry.type === "run") return { ...stamp, runId: entry.runId, phase: entry.phase } as Entry;
  if (entry.type === "run_parked") return { ...stamp, runId: entry.runId, questions: [] } as Entry;
  if (entry.type !== "message") return uncountedOf(entry);
  const { message } = entry;
  if (message.role !== "assistant") return { ...stamp, message: { ...message, content: "", metadata: {} } } as Entry;
  const { role, provider, model, stopReason, toolCalls = [] } = message;
  const named = toolCalls.map(({ name }) => ({ id: "", name, arguments: "" }));
  return {
    ...stamp,
    message: { role, content: "", toolCalls: named, ...defined({ provider, model, stopReason }) },
  } as Entry;
}

/** Reduces an entry to its time: the latency of the next entry may be measured from it. */
function uncountedOf({ id, parentId, seq, timestamp }: Entry): Entry {
  return { id, parentId, seq, timestamp, type: "custom", customType: "uncounted" } as Entry;
}
