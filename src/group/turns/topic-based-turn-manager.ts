import { checkArgument, checkOptionsOf, type KeysOf } from "../../session/check-arguments.ts";
import { SessionError, show } from "../../session/errors.ts";
import { textOf } from "../../session/message.ts";
import type { SessionTurn } from "../../session/state/state.ts";
import type { TurnManager } from "./turn-manager.ts";
import { TurnRoster, type WholeView } from "./turn-roster.ts";
import { textPattern, wordPattern } from "./word-pattern.ts";

/** The agent for each keyword. Pairs keep their order; the keys of an object that are whole numbers come first. */
export type Topics = Readonly<Record<string, string>> | Iterable<readonly [keyword: string, agentName: string]>;

/** How keywords are searched for. */
export interface TopicOptions {
  /** False also finds a keyword inside longer words (default true). */
  readonly wholeWords?: boolean;
}

const KEYS: KeysOf<TopicOptions> = { wholeWords: true };

interface Topic {
  readonly pattern: RegExp;
  readonly agentName: string;
}

/** The agent of a keyword in the latest turn speaks next; the first matching keyword in the given order decides. */
export class TopicBasedTurnManager extends TurnRoster implements TurnManager {
  readonly #topics: readonly Topic[];
  readonly #fallbackAgent: string | null;

  /**
   * If the latest turn has no keyword, the fallback speaks; without a fallback, the conversation ends. It also ends
   * after `maxRounds` agent turns.
   */
  constructor(topics: Topics, fallbackAgent: string | null = null, maxRounds = 10, options: TopicOptions = {}) {
    super(maxRounds);
    checkOptionsOf(options, KEYS, "TopicBasedTurnManager");
    this.#topics = readTopics(topics, options.wholeWords ?? true);
    if (fallbackAgent !== null && typeof fallbackAgent !== "string") {
      throw new SessionError("INVALID_OPTION", `The fallback agent is ${show(fallbackAgent)}; give a name or null.`);
    }
    this.#fallbackAgent = fallbackAgent;
  }

  protected roundsOf({ moves }: WholeView): number {
    return moves.length;
  }

  protected choose({ turns }: WholeView): string | null {
    const text = latestText(turns);
    const topic = this.#topics.find(({ pattern }) => text.search(pattern) >= 0);
    return topic?.agentName ?? this.#fallbackAgent;
  }
}

function readTopics(topics: Topics, wholeWords: boolean): readonly Topic[] {
  if (typeof topics !== "object" || topics === null) {
    throw new SessionError("INVALID_OPTION", "The topics are neither an object nor a list of pairs.");
  }
  const pairs =
    Symbol.iterator in topics ? [...(topics as Iterable<readonly [string, string]>)] : Object.entries(topics);
  for (const pair of pairs)
    checkArgument(Array.isArray(pair), pair, "TopicBasedTurnManager", "topics, as pairs of keyword and agent");
  return pairs.map(([keyword, agentName]) => {
    if (typeof keyword !== "string" || keyword.trim() === "") {
      throw new SessionError(
        "INVALID_OPTION",
        `The topic ${show(keyword)} is not a keyword; give a text that is not empty.`,
      );
    }
    if (typeof agentName !== "string") {
      throw new SessionError("INVALID_OPTION", `The topic ${show(keyword)} leads to no agent; give a name.`);
    }
    const text = keyword.trim();
    return { pattern: wholeWords ? wordPattern(text) : textPattern(text), agentName };
  });
}

/** The latest text that is visible to all: results, calls and failures have no text. */
function latestText(turns: readonly SessionTurn[]): string {
  const latest = turns.findLast(
    ({ role, toolCalls = [], stopReason }) => role !== "tool" && toolCalls.length === 0 && stopReason !== "error",
  );
  return latest === undefined ? "" : textOf(latest.content);
}
