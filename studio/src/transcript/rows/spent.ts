import { costOfAnswer } from "../../../../src/models/shown-cost.ts";
import type { Round } from "./rows.ts";

/** The usage of some rounds; unknown values are null. */
export interface Spent {
  readonly calls: number;
  readonly tokensRead: number;
  readonly tokensWritten: number;
  readonly tokens: number | null;
  readonly cost: number | null;
  /** Whether some of the cost was computed from prices, as it was not recorded. */
  readonly costComputed: boolean;
  readonly tookMs: number | null;
}

/** Sums up the usage of rounds: calls, tokens, cost, and the time from the entry before them to their last result. */
export function spentOn(rounds: readonly Round[]): Spent {
  const messages = rounds.map(({ entry }) => entry.message);
  const usages = messages.flatMap(({ usage }) => usage ?? []);
  const costs = messages.flatMap((message) => costOfAnswer(message) ?? []);
  return {
    calls: sum(messages.map(({ toolCalls = [] }) => toolCalls.length)),
    tokensRead: sum(usages.map(({ inputTokens }) => inputTokens)),
    tokensWritten: sum(usages.map(({ outputTokens }) => outputTokens)),
    tokens: usages.length === 0 ? null : sum(usages.map(({ totalTokens }) => totalTokens)),
    cost: costs.length === 0 ? null : sum(costs.map(({ cost }) => cost)),
    costComputed: costs.some(({ computed }) => computed),
    tookMs: timeOf(rounds),
  };
}

function timeOf(rounds: readonly Round[]): number | null {
  const since = rounds[0]?.since ?? null;
  const last = rounds.at(-1);
  if (since === null || last === undefined) return null;
  const ends = [last.entry, ...last.results.values()].map(({ timestamp }) => Date.parse(timestamp));
  const tookMs = Math.max(...ends) - Date.parse(since);
  return tookMs > 0 ? tookMs : null;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
