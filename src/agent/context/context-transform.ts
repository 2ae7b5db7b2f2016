import { createHash } from "node:crypto";
import { invalidOption } from "../../session/check-arguments.ts";
import { checkedMessage } from "../../session/checked-message.ts";
import { acceptable, compactionSummaryOf } from "../../session/context/context.ts";
import { isReminder } from "../../session/context/reminder.ts";
import type { ContextPruner } from "../../session/context/context-pruner.ts";
import { estimateTextTokens, messageTokens, type TextTokenizer } from "../../session/context/tokens.ts";
import { type Message, textOf } from "../../session/message.ts";
import type { Transcript } from "../../session/value/transcript.ts";
import { checkCount } from "../../stores/complete/valid-arguments.ts";
import { describeThrown } from "../describe-thrown.ts";

/** The information that a transform gets about its request. */
export interface ContextInfo {
  /** The id of the run's session. */
  readonly sessionId: string;
  readonly round: number;
  /** The text of the latest user message. */
  readonly query: string;
  /** The user message with which the run started, or null. */
  readonly question: Message | null;
  /** Aborted together with the run. */
  readonly signal: AbortSignal;
}

/**
 * Changes the messages of a request before it is sent: removes, shortens or replaces them.
 *
 * - The messages are the agent's instructions, the summary of the last compaction, and all messages since.
 * - It affects the request only; the log has every message unchanged.
 * - It is called once for each request; a retry sends the same request.
 * - After the last transform, tool calls without results and results without calls are repaired.
 * - If it fails, so does the run.
 */
export type ContextTransform = (
  messages: readonly Message[],
  info: ContextInfo,
) => readonly Message[] | Promise<readonly Message[]>;

/** The limits of the context that a pruner may keep. */
export interface PruneContextLimits {
  /** The most messages of a request. */
  readonly maxTurns: number;
  /** The most tokens of a request. */
  readonly maxTokens?: number;
  /** Counts the tokens of a text (default: one for every four characters); use the same function for the pruner. */
  readonly countTokens?: TextTokenizer;
}

/** The most sessions for which a transform caches its choice. */
const CHOICES_MAX = 100;

/** The messages before a question that a pruner chose to keep. */
interface Choice {
  /** The messages that it chose from, as JSON, because the next run reads them again as new objects. */
  readonly from: readonly string[];
  readonly kept: readonly boolean[];
}

/**
 * A transform that removes the messages that the pruner considers least relevant to the question.
 *
 * It keeps leaving out the same messages while the rest is within the limits, so that requests have the same prefix and the provider's
 * prompt cache can be used. When the rest exceeds the limits, it chooses again and leaves a quarter of the room free, so that the new
 * choice is kept for several requests.
 *
 * Some messages are kept regardless of the limits, but count towards them: the instructions, the summary of a
 * compaction, and everything from the run's question on, because otherwise the run would repeat its work.
 *
 * @throws {SessionError} `INVALID_OPTION` for an invalid pruner, or a limit that is not a whole number of 0 or more.
 */
export function pruneContext(pruner: ContextPruner, limits: PruneContextLimits): ContextTransform {
  if (typeof pruner?.prune !== "function") throw invalidOption("The pruner of a context has no function prune.");
  const { maxTurns, maxTokens, countTokens = estimateTextTokens } = limits ?? {};
  checkCount(maxTurns, "maxTurns");
  if (maxTokens !== undefined) checkCount(maxTokens, "maxTokens");
  const tokensOf = (messages: readonly Message[]): number =>
    messages.reduce((sum, message) => sum + messageTokens(message, countTokens), 0);
  const choices = new Map<string, Choice>();
  return async (messages, { sessionId, query, question }) => {
    const start = startOf(messages, question);
    const summaries = messages.slice(0, start).filter(isSummary);
    const past = messages.slice(0, start).filter((message) => !isSummary(message));
    const system = past.filter(({ role }) => role === "system");
    const fixed = [...summaries, ...messages.slice(start)];
    const turns = Math.max(maxTurns - fixed.length, system.length);
    const tokens =
      maxTokens === undefined ? {} : { maxTokens: Math.max(maxTokens - tokensOf(fixed), tokensOf(system)) };
    const before = choices.get(sessionId);
    const held = before === undefined ? null : heldBy(before, past);
    const isWithin = (some: readonly Message[]): boolean =>
      some.length <= turns && (tokens.maxTokens === undefined || tokensOf(some) <= tokens.maxTokens);
    const kept =
      held !== null && isWithin(held)
        ? held
        : await pruner.prune(
            past,
            query,
            held === null ? turns : withHeadroom(turns, system.length),
            held === null || tokens.maxTokens === undefined
              ? tokens
              : { maxTokens: withHeadroom(tokens.maxTokens, tokensOf(system)) },
          );
    // Deleted first, so that the map is in the order of last use (LRU).
    choices.delete(sessionId);
    if (kept.length < past.length) choices.set(sessionId, choiceOf(past, kept));
    if (choices.size > CHOICES_MAX) choices.delete(choices.keys().next().value as string);
    const said = kept.findIndex(({ role }) => role !== "system");
    const first = said < 0 ? kept.length : said;
    return [...kept.slice(0, first), ...summaries, ...kept.slice(first), ...messages.slice(start)];
  };
}

function withHeadroom(room: number, least: number): number {
  return Math.max(least, Math.floor((room * 3) / 4));
}

function choiceOf(past: readonly Message[], kept: readonly Message[]): Choice {
  const chosen = new Set(kept);
  return { from: past.map(keyOf), kept: past.map((message) => chosen.has(message)) };
}

/** The messages that an earlier choice keeps, and all later ones; null if the messages do not start with those chosen from. */
function heldBy({ from, kept }: Choice, past: readonly Message[]): readonly Message[] | null {
  if (past.length < from.length || from.some((key, index) => keyOf(past[index] as Message) !== key)) return null;
  return past.filter((_message, index) => kept[index] !== false);
}

const keys = new WeakMap<Message, string>();

/** A digest of a message, computed once. */
function keyOf(message: Message): string {
  const known = keys.get(message) ?? createHash("sha256").update(JSON.stringify(message)).digest("base64");
  keys.set(message, known);
  return known;
}

/**
 * Applies all transforms and returns messages that every provider accepts.
 *
 * @throws {SessionError} `INVALID_OPTION` for a transform that returns no messages. Errors of a transform are passed
 * on.
 */
export async function transformContext(
  messages: readonly Message[],
  transforms: readonly ContextTransform[],
  info: Omit<ContextInfo, "query">,
): Promise<readonly Message[]> {
  const last = messages.findLast(isQuestion);
  const known = new Set<unknown>(messages);
  const withQuery = Object.freeze({ ...info, query: last === undefined ? "" : textOf(last.content) });
  let made: readonly Message[] = [...messages];
  for (const [index, transform] of transforms.entries()) {
    made = checkedMessages(await transform(made, withQuery), known, index + 1);
  }
  const whole = acceptable(made);
  if (whole.length > 0 || messages.length === 0) return whole;
  throw invalidOption("The context transforms left no message to send; keep at least one.");
}

/** The user message that a run on this transcript answers; null if there is none. */
export function questionOf(transcript: Transcript): Message | null {
  for (let index = transcript.length - 1; index >= 0; index--) {
    const message = transcript.at(index)?.message;
    if (message !== undefined && isQuestion(message)) return message;
  }
  return null;
}

/** The index of the question, or of the latest user message if the question is no longer there. */
function startOf(messages: readonly Message[], question: Message | null): number {
  const found = question === null ? -1 : messages.lastIndexOf(question);
  const start = found < 0 ? messages.findLastIndex(isQuestion) : found;
  return start < 0 ? messages.length : start;
}

function isQuestion(message: Message): boolean {
  return message.role === "user" && !isSummary(message) && !isReminder(message);
}

function isSummary(message: Message): boolean {
  return compactionSummaryOf(message) !== null;
}

/** Checks the messages that a transform returned; the run's own need no check. */
function checkedMessages(made: unknown, known: Set<unknown>, number: number): Message[] {
  if (!Array.isArray(made)) throw invalidOption(`Context transform ${number} gave no list of messages.`);
  return made.map((message: Message) => {
    if (known.has(message)) return message;
    try {
      const copy = checkedMessage(message);
      known.add(copy);
      return copy;
    } catch (cause) {
      const problem = describeThrown(cause);
      throw invalidOption(`Context transform ${number} gave a message that cannot be sent: ${problem}`, cause);
    }
  });
}
