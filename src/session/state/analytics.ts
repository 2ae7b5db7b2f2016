import { checkArgument } from "../check-arguments.ts";
import { SessionError } from "../errors.ts";
import type { SessionState } from "./state.ts";

/** The totals of a session's turns. */
export interface SessionAnalytics {
  readonly sessionId: string;
  /** Turns of all roles on the active path. */
  readonly totalTurns: number;
  readonly totalTokens: number;
  /** In US dollars. */
  readonly totalCost: number;
  /** The time between the earliest and the latest turn; 0 with fewer than two. */
  readonly durationSeconds: number;
  /** The providers that answered, without duplicates, in the order of their first answers. */
  readonly agentsUsed: readonly string[];
  /** The tools that were called, without duplicates. */
  readonly toolsInvoked: readonly string[];
  /** The mean time between one turn and the next, in the order of their times; 0 with fewer than two. */
  readonly avgResponseTimeMs: number;
  /** The models that answered, without duplicates. */
  readonly modelsUsed: readonly string[];
}

/**
 * Computes the totals of one session; for many sessions, use `aggregateAnalytics`.
 *
 * @throws {SessionError} `INVALID_OPTION` for a state that was read without its turns.
 */
export function computeAnalytics(state: SessionState): SessionAnalytics {
  checkArgument(Array.isArray(state?.turns), state, "computeAnalytics", "the state of a session");
  const { sessionId, turns, totalTokens, totalCost } = state;
  if (turns.length === 0 && state.turnCount > 0) {
    throw new SessionError(
      "INVALID_OPTION",
      `The state of session ${sessionId} was read without its turns; read it with them.`,
    );
  }
  const spanMs = spanOf(turns.map(({ timestamp }) => Date.parse(timestamp)));
  return Object.freeze({
    sessionId,
    totalTurns: turns.length,
    totalTokens,
    totalCost,
    durationSeconds: spanMs / 1000,
    agentsUsed: withoutDuplicates(turns.map(({ provider }) => provider)),
    toolsInvoked: withoutDuplicates(turns.flatMap(({ toolCalls = [] }) => toolCalls.map(({ name }) => name))),
    // The sum of all gaps is the whole span.
    avgResponseTimeMs: turns.length < 2 ? 0 : spanMs / (turns.length - 1),
    modelsUsed: withoutDuplicates(turns.map(({ model }) => model)),
  });
}

function spanOf(times: readonly number[]): number {
  let [earliest, latest] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const time of times) {
    earliest = Math.min(earliest, time);
    latest = Math.max(latest, time);
  }
  return times.length < 2 ? 0 : latest - earliest;
}

function withoutDuplicates(names: readonly (string | undefined)[]): readonly string[] {
  return Object.freeze([...new Set(names.filter((name) => name !== undefined))]);
}
