import type { AggregateKey, AggregateQuery, AggregateRow, SessionStore } from "../session/store.ts";
import type { Usage } from "../session/usage.ts";

/** Which sessions and which turns to add up; everything by default. */
export type AnalyticsQuery = Omit<AggregateQuery, "groupBy">;

/** What the turns of several sessions add up to. */
export interface AnalyticsTotals {
  /** How many sessions have at least one of the turns. */
  readonly sessions: number;
  readonly totalTurns: number;
  /** How many calls to tools were made. */
  readonly toolCalls: number;
  readonly totalTokens: number;
  /** In US dollars. */
  readonly totalCost: number;
  readonly usage: Usage;
}

/** Totals over many sessions, in all and by day, model and user. */
export interface AggregateAnalytics {
  readonly totals: AnalyticsTotals;
  /** By UTC date, oldest first; a day without a turn has no row. */
  readonly byDay: readonly ({ readonly day: string } & AnalyticsTotals)[];
  /** By `provider/model`; turns that no named model wrote are under null, which comes first. */
  readonly byModel: readonly ({ readonly model: string | null } & AnalyticsTotals)[];
  /** By user; sessions without one are under null, which comes first. */
  readonly byUser: readonly ({ readonly user: string | null } & AnalyticsTotals)[];
}

/**
 * The analytics of many sessions, added up by the store, which reads every session of the query once for each sum.
 *
 * Every turn counts that a session itself appended, on whatever branch; what a fork took over counts in its source. The
 * four sums are read one after the other, so that an append in between can be in the later ones only.
 *
 * @throws {SessionError} `INVALID_QUERY` or `INVALID_ID` for a query that makes no sense.
 */
export async function aggregateAnalytics(store: SessionStore, query: AnalyticsQuery = {}): Promise<AggregateAnalytics> {
  const rowsBy = (...groupBy: readonly AggregateKey[]): Promise<AggregateRow[]> =>
    store.aggregate({ ...query, groupBy });
  const [all] = await rowsBy();
  const byDay = (await rowsBy("day")).map((row) => ({ day: row.day as string, ...totalsOf(row) }));
  const byModel = (await rowsBy("model")).map((row) => ({ model: row.model ?? null, ...totalsOf(row) }));
  const byUser = (await rowsBy("user")).map((row) => ({ user: row.user ?? null, ...totalsOf(row) }));
  return { totals: totalsOf(all as AggregateRow), byDay, byModel, byUser };
}

function totalsOf({ sessions, messages, toolCalls, usage, cost }: AggregateRow): AnalyticsTotals {
  return { sessions, totalTurns: messages, toolCalls, totalTokens: usage.totalTokens, totalCost: cost, usage };
}
