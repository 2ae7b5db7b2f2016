import type { Message } from "../message.ts";

/** Further limits on the kept messages, beside their number. */
export interface PruneLimits {
  /** The most tokens of the kept messages in total. */
  readonly maxTokens?: number;
}

/**
 * Chooses the messages of a history that are sent to a model.
 *
 * - Returns a subsequence of the history, with at most `maxTurns` messages and `maxTokens` tokens.
 * - Returns the whole history if it is within both limits.
 * - Does not change the history.
 */
export interface ContextPruner {
  prune(
    history: readonly Message[],
    query: string,
    maxTurns: number,
    limits?: PruneLimits,
  ): Promise<readonly Message[]>;
}
