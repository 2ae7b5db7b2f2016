import { checkArgument, checkStoreArgument, isObject } from "../session/check-arguments.ts";
import type { AggregateKey, AggregateQuery, AggregateRow, ImportedSums, SessionStore } from "../session/store.ts";
import type { Usage } from "../session/usage.ts";
import { aggregateSessions } from "../stores/complete/aggregate-sessions.ts";
import { checkAggregateQuery } from "../stores/complete/valid-query.ts";

/** The groupings: all turns, by day, by model and by user. */
const GROUPINGS: readonly (readonly AggregateKey[])[] = [[], ["day"], ["model"], ["user"]];

/** Which sessions and turns to add up; all by default. */
export type AnalyticsQuery = Omit<AggregateQuery, "groupBy">;

/** The totals of the turns of several sessions. */
export interface AnalyticsTotals {
  /** How many sessions contain at least one of the turns. */
  readonly sessions: number;
  readonly totalTurns: number;
  /** How many calls to tools were made. */
  readonly toolCalls: number;
  readonly totalTokens: number;
  /** In US dollars. */
  readonly totalCost: number;
  readonly usage: Usage;
  /** The sums of imported work, which no other figure includes; absent without imported work. */
  readonly imported?: ImportedSums;
}

/** Totals over many sessions: overall, and by day, model and user. */
export interface AggregateAnalytics {
  readonly totals: AnalyticsTotals;
  /** By UTC date, oldest first; a day without a turn has no row. */
  readonly byDay: readonly ({ readonly day: string } & AnalyticsTotals)[];
  /** By `provider/model`; turns without a model are under null, which comes first. */
  readonly byModel: readonly ({ readonly model: string | null } & AnalyticsTotals)[];
  /** By user; sessions without one are under null, which comes first. */
  readonly byUser: readonly ({ readonly user: string | null } & AnalyticsTotals)[];
}

/**
 * Computes totals over many sessions. Every matching session is read once, and only the totals are kept in memory.
 *
 * Every turn that a session itself appended counts, on whatever branch. A turn inherited by a fork counts in its source, and a
 * merged turn in its source too, unless that was deleted.
 *
 * @throws {SessionError} `INVALID_QUERY` or `INVALID_ID` for an invalid query.
 */
export async function aggregateAnalytics(store: SessionStore, query: AnalyticsQuery = {}): Promise<AggregateAnalytics> {
  checkStoreArgument(store, "aggregateAnalytics");
  checkArgument(isObject(query), query, "aggregateAnalytics", "a query");
  const { groupBy: _, ...asked } = checkAggregateQuery({ ...query, groupBy: [] });
  const [all = [], days = [], models = [], users = []] = await aggregateSessions(store, asked, GROUPINGS);
  return {
    totals: totalsOf(all[0] as AggregateRow),
    byDay: days.map((row) => ({ day: row.day as string, ...totalsOf(row) })),
    byModel: models.map((row) => ({ model: row.model ?? null, ...totalsOf(row) })),
    byUser: users.map((row) => ({ user: row.user ?? null, ...totalsOf(row) })),
  };
}

function totalsOf({ sessions, messages, toolCalls, usage, cost, imported }: AggregateRow): AnalyticsTotals {
  const own = { sessions, totalTurns: messages, toolCalls, totalTokens: usage.totalTokens, totalCost: cost, usage };
  return imported === undefined ? own : { ...own, imported };
}
