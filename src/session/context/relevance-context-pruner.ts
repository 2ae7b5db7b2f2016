import { checkOptionsOf, type KeysOf } from "../check-arguments.ts";
import type { ContextPruner, PruneLimits } from "./context-pruner.ts";
import { SessionError, show } from "../errors.ts";
import { type Message, textOf } from "../message.ts";
import { estimateTextTokens, messageTokens, type TextTokenizer } from "./tokens.ts";

/** A message to be scored. */
export interface ScoredTurn {
  readonly message: Message;
  readonly words: ReadonlySet<string>;
  /** 0 for the oldest message that is not a system message, 1 for the newest. */
  readonly recency: number;
}

/** The query for which messages are scored. */
export interface ScoredQuery {
  readonly text: string;
  readonly words: ReadonlySet<string>;
}

/** The relevance of a message to a query; messages with higher scores are kept. */
export type RelevanceScorer = (turn: ScoredTurn, query: ScoredQuery) => number | Promise<number>;

/** Options of a `RelevanceContextPruner`. */
export interface RelevanceContextPrunerOptions {
  /** Splits a text into words for the comparison (default: at white space, in lower case). */
  readonly tokenizer?: (text: string) => Iterable<string>;
  /** Scores a message (default: the number of words it shares with the query, and 0.3 times its recency). */
  readonly scorer?: RelevanceScorer;
  /** Whether an answer with tool calls and the results of the calls are kept or dropped together (default true). */
  readonly keepToolPairs?: boolean;
  /** The most tokens of the kept messages, if a call does not give a limit (default: no limit). */
  readonly maxTokens?: number;
  /** Counts the tokens of a text (default: one for every four characters). */
  readonly countTokens?: TextTokenizer;
}

const PRUNER_KEYS: KeysOf<RelevanceContextPrunerOptions> = {
  tokenizer: true,
  scorer: true,
  keepToolPairs: true,
  maxTokens: true,
  countTokens: true,
};

const RECENCY_WEIGHT = 0.3;

/**
 * Keeps the messages that share the most words with the current question; of equal ones, the newer.
 *
 * System messages are kept first, in their order, as far as the limits allow. The others are added by score; a message that does
 * not fit is skipped, and the next one is tried. If every provider accepts the history, every provider accepts the result, unless
 * `keepToolPairs` is false.
 */
export class RelevanceContextPruner implements ContextPruner {
  readonly #tokenizer: (text: string) => Iterable<string>;
  readonly #scorer: RelevanceScorer;
  readonly #keepToolPairs: boolean;
  readonly #maxTokens: number | undefined;
  readonly #countTokens: TextTokenizer;

  /** @throws {SessionError} `INVALID_OPTION` for an invalid option. */
  constructor(options: RelevanceContextPrunerOptions = {}) {
    checkOptionsOf(options, PRUNER_KEYS, "RelevanceContextPruner");
    const { tokenizer = splitWords, scorer = scoreByWords, countTokens = estimateTextTokens } = options;
    for (const [name, value] of Object.entries({ tokenizer, scorer, countTokens })) {
      if (typeof value !== "function") throw invalidPruning(`The option ${name} of a pruner is not a function.`);
    }
    const { keepToolPairs = true } = options;
    if (typeof keepToolPairs !== "boolean")
      throw invalidPruning("The option keepToolPairs of a pruner is not true or false.");
    checkCount(options.maxTokens, "maxTokens");
    this.#tokenizer = tokenizer;
    this.#scorer = scorer;
    this.#keepToolPairs = keepToolPairs;
    this.#maxTokens = options.maxTokens;
    this.#countTokens = countTokens;
  }

  /**
   * The messages of a history that are most relevant to the query, at most `maxTurns`, in their order.
   *
   * @throws {SessionError} `INVALID_OPTION` for a limit that is not a whole number of 0 or more.
   */
  async prune(
    history: readonly Message[],
    query: string,
    maxTurns: number,
    limits: PruneLimits = {},
  ): Promise<Message[]> {
    const { maxTokens = this.#maxTokens } = limits;
    if (!Array.isArray(history)) throw invalidPruning("The history to prune is not a list of messages.");
    if (typeof query !== "string") throw invalidPruning("The query to prune by is not a text.");
    checkCount(maxTurns, "maxTurns", true);
    checkCount(maxTokens, "maxTokens");
    const room = new RemainingRoom(maxTurns, maxTokens, (message) => messageTokens(message, this.#countTokens));
    if (room.fits(history)) return [...history];
    const kept = new Set<number>();
    const take = (positions: readonly number[]): boolean => {
      const fitted = room.take(positions.map((position) => history[position] as Message));
      if (fitted) for (const position of positions) kept.add(position);
      return fitted;
    };
    const system = positionsOf(history, (message) => message.role === "system");
    // Stops at the first one that does not fit: a later system message may refer to it.
    system.every((position) => take([position]));
    for (const unit of await this.#ranked(history, query)) take(unit);
    return history.filter((_, position) => kept.has(position));
  }

  /** The groups of messages that are kept or dropped together, the best first; of equal ones, the later first. */
  async #ranked(history: readonly Message[], query: string): Promise<readonly (readonly number[])[]> {
    const others = positionsOf(history, (message) => message.role !== "system");
    const scores = await this.#scores(history, others, query);
    const units = this.#keepToolPairs ? unitsOf(history, others) : others.map((position) => [position]);
    const scoreOf = (unit: readonly number[]): number => Math.max(...unit.map((position) => scores.get(position) ?? 0));
    return units
      .map((unit) => ({ unit, score: scoreOf(unit), last: unit.at(-1) as number }))
      .sort((a, b) => b.score - a.score || b.last - a.last)
      .map(({ unit }) => unit);
  }

  async #scores(
    history: readonly Message[],
    positions: readonly number[],
    query: string,
  ): Promise<ReadonlyMap<number, number>> {
    const asked = { text: query, words: new Set(this.#tokenizer(query)) };
    const newest = positions.length - 1;
    const scores = positions.map(async (position, index) => {
      const message = history[position] as Message;
      const words = new Set(this.#tokenizer(textOf(message.content)));
      const recency = newest === 0 ? 1 : index / newest;
      const score = await this.#scorer({ message, words, recency }, asked);
      if (typeof score === "number" && !Number.isNaN(score)) return [position, score] as const;
      throw invalidPruning(
        `The scorer of a pruner returned ${show(score)} for message ${position}; it must return a number.`,
      );
    });
    return new Map(await Promise.all(scores));
  }
}

/** The remaining messages and tokens. */
class RemainingRoom {
  #turns: number;
  #tokens: number;
  readonly #tokensOf: (message: Message) => number;

  constructor(maxTurns: number, maxTokens: number | undefined, tokensOf: (message: Message) => number) {
    this.#turns = maxTurns;
    this.#tokens = maxTokens ?? Number.POSITIVE_INFINITY;
    // Without a limit, tokens need not be counted.
    this.#tokensOf = maxTokens === undefined ? () => 0 : tokensOf;
  }

  fits(messages: readonly Message[]): boolean {
    return messages.length <= this.#turns && this.#count(messages) <= this.#tokens;
  }

  /** Subtracts these messages from the limits, if they fit. */
  take(messages: readonly Message[]): boolean {
    const tokens = this.#count(messages);
    if (messages.length > this.#turns || tokens > this.#tokens) return false;
    this.#turns -= messages.length;
    this.#tokens -= tokens;
    return true;
  }

  #count(messages: readonly Message[]): number {
    return messages.reduce((sum, message) => sum + this.#tokensOf(message), 0);
  }
}

function splitWords(text: string): string[] {
  return text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
}

function scoreByWords({ words, recency }: ScoredTurn, query: ScoredQuery): number {
  let shared = 0;
  for (const word of query.words) if (words.has(word)) shared += 1;
  return shared + RECENCY_WEIGHT * recency;
}

/** Groups an answer with tool calls and the results of its calls; every other message is a group by itself. */
function unitsOf(history: readonly Message[], positions: readonly number[]): number[][] {
  const units: number[][] = [];
  const callers = new Map<string, number[]>();
  for (const position of positions) {
    const message = history[position] as Message;
    const caller = message.role === "tool" ? callers.get(message.toolCallId) : undefined;
    if (caller !== undefined) {
      caller.push(position);
      continue;
    }
    const unit = [position];
    units.push(unit);
    if (message.role !== "assistant") continue;
    // Some models reuse call ids in every answer, so an id refers to the latest answer with it.
    for (const { id } of message.toolCalls ?? []) callers.set(id, unit);
  }
  return units;
}

function positionsOf(history: readonly Message[], wanted: (message: Message) => boolean): number[] {
  return history.flatMap((message, position) => (wanted(message) ? [position] : []));
}

function checkCount(value: number | undefined, name: string, required = false): void {
  if ((value === undefined && !required) || (Number.isSafeInteger(value) && (value as number) >= 0)) return;
  throw invalidPruning(`The option ${name} of a pruner is ${show(value)}; it must be a whole number of 0 or more.`);
}

function invalidPruning(message: string): SessionError {
  return new SessionError("INVALID_OPTION", message);
}
