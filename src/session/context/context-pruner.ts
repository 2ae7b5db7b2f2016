import type { Message } from "../message.ts";

/** How much of a history may stay, beside its number of messages. */
export interface PruneLimits {
  /** The most tokens that what stays may take together. */
  readonly maxTokens?: number;
}

/**
 * Chooses what of a history is worth sending to a model.
 *
 * - What it returns is a part of the history, in its order, of at most `maxTurns` messages and `maxTokens` tokens.
 * - A history within both limits is returned whole.
 * - The history is not changed.
 */
export interface ContextPruner {
  prune(
    history: readonly Message[],
    query: string,
    maxTurns: number,
    limits?: PruneLimits,
  ): Promise<readonly Message[]>;
}
