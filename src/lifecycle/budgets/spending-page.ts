import type { LedgerHour, SpentAmounts } from "../../session/ledger.ts";
import type { Payment } from "../../session/payer.ts";

const HOUR_MS = 3_600_000;
/**
 * How long the page keeps a run that no longer settles. If such a run is recovered in this time, only its unsettled spending is counted.
 */
const FORGET_MS = 24 * HOUR_MS;
const RUNS_MAX = 1000;

/** The settled amount of a run, and its reservation with the time at which that ends. */
interface RunOnPage {
  readonly untilMs: number;
  readonly reserved: SpentAmounts;
  readonly settled: SpentAmounts;
}

/** The content of a user's page in the ledger. */
export interface SpendingPage extends SpentAmounts {
  /** The hour up to which the totals go. */
  readonly hour: number;
  readonly runs: ReadonlyMap<string, RunOnPage>;
}

/** A page after a payment, and the bucket of the hour that has ended since the page was last written. */
export interface SettledPage {
  readonly page: SpendingPage;
  readonly ended: LedgerHour | null;
}

/** A run, until when it has reserved how many tokens and dollars, and how many it has settled. */
type RunTuple = readonly [
  run: string,
  untilMs: number,
  reservedTokens: number,
  reservedCost: number,
  settledTokens: number,
  settledCost: number,
];

/** The hours since 1970. */
export function hourOf(ms: number): number {
  return Math.floor(ms / HOUR_MS);
}

/** The time at which an hour begins. */
export function timeOfHour(hour: number): string {
  return new Date(hour * HOUR_MS).toISOString();
}

/** The page of a user who has spent nothing. */
export function newPage(nowMs: number): SpendingPage {
  return { hour: hourOf(nowMs), totalTokens: 0, cost: 0, runs: new Map() };
}

/** The page in a text that `textOf` wrote. */
export function pageIn(text: string): SpendingPage {
  const { runs, ...page } = JSON.parse(text) as Omit<SpendingPage, "runs"> & { readonly runs: readonly RunTuple[] };
  const read = ([run, untilMs, reservedTokens, reservedCost, totalTokens, cost]: RunTuple): [string, RunOnPage] => [
    run,
    { untilMs, reserved: { totalTokens: reservedTokens, cost: reservedCost }, settled: { totalTokens, cost } },
  ];
  return { ...page, runs: new Map(runs.map(read)) };
}

/** The text of a page. */
export function textOf({ runs, ...page }: SpendingPage): string {
  const tuples = [...runs].map(([run, { untilMs, reserved, settled }]): RunTuple => {
    const amounts = [reserved.totalTokens, reserved.cost, settled.totalTokens, settled.cost] as const;
    return [run, untilMs, ...amounts];
  });
  return JSON.stringify({ ...page, runs: tuples });
}

/**
 * Adds what a run has spent since it last settled, and ends its reservation. A run that the page does not know has settled
 * what its process knows of.
 */
export function settle(page: SpendingPage, { run, before, spent, ends }: Payment, nowMs: number): SettledPage {
  const settled = page.runs.get(run)?.settled ?? before;
  const totals = {
    totalTokens: page.totalTokens + Math.max(0, spent.totalTokens - settled.totalTokens),
    cost: page.cost + Math.max(0, spent.cost - settled.cost),
  };
  // The clock of another machine may be ahead.
  const hour = Math.max(page.hour, hourOf(nowMs));
  const others = [...page.runs].filter(([other, { untilMs }]) => other !== run && untilMs > nowMs - FORGET_MS);
  const mine: [string, RunOnPage] = [run, { untilMs: nowMs, reserved: NOTHING, settled: spent }];
  const runs = new Map([...others.slice(-RUNS_MAX), ...(ends ? [] : [mine])]);
  const { hour: last, totalTokens, cost } = page;
  return { page: { ...page, ...totals, hour, runs }, ended: hour === last ? null : { hour: last, totalTokens, cost } };
}

/** Reserves what the next request of a run will probably spend. */
export function reserve(page: SpendingPage, { run, spent, next, ttlMs }: Payment, nowMs: number): SpendingPage {
  if (next === null) return page;
  const mine: RunOnPage = { untilMs: nowMs + ttlMs, reserved: next, settled: spent };
  return { ...page, runs: new Map([...page.runs, [run, mine]]) };
}

/** The amount that is reserved now. */
export function reservedOn({ runs }: SpendingPage, nowMs: number): SpentAmounts {
  let [totalTokens, cost] = [0, 0];
  for (const { untilMs, reserved } of runs.values()) {
    if (untilMs <= nowMs) continue;
    totalTokens += reserved.totalTokens;
    cost += reserved.cost;
  }
  return { totalTokens, cost };
}

/** Nothing spent or reserved. */
export const NOTHING: SpentAmounts = { totalTokens: 0, cost: 0 };
