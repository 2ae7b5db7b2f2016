import { checkedMessage } from "../../session/checked-message.ts";
import { acceptable, compactionSummaryOf } from "../../session/context/context.ts";
import type { ContextPruner } from "../../session/context/context-pruner.ts";
import { SessionError } from "../../session/errors.ts";
import { type Message, textOf } from "../../session/message.ts";
import { estimateTextTokens, messageTokens, type TextTokenizer } from "../../session/context/tokens.ts";
import type { Transcript } from "../../session/value/transcript.ts";
import { checkCount } from "../../stores/complete/valid-arguments.ts";
import { describeThrown } from "../describe-thrown.ts";

/** What a transform may know of the request that it prepares. */
export interface ContextInfo {
  /** The id of the run's session. */
  readonly sessionId: string;
  readonly round: number;
  /** The text of the latest user message. */
  readonly query: string;
  /** The user message that the run began with, or null. */
  readonly question: Message | null;
  /** Aborts with the run. */
  readonly signal: AbortSignal;
}

/**
 * Makes the messages of one request out of those that a run would send: fewer, shorter, others.
 *
 * - The messages are the agent's instructions, what the last compaction left, and what was said since.
 * - It works on the request only; what is kept of the run has every message as it was said.
 * - It is called once for each request, before it is made; a request that is tried again is the same.
 * - After the last transform, a tool call without its result, or a result without its call, is put right.
 * - If it fails, so does the run.
 */
export type ContextTransform = (
  messages: readonly Message[],
  info: ContextInfo,
) => readonly Message[] | Promise<readonly Message[]>;

/** How much of the context a pruner may keep. */
export interface PruneContextLimits {
  /** The most messages of a request. */
  readonly maxTurns: number;
  /** The most tokens of a request. */
  readonly maxTokens?: number;
  /** Counts the tokens of a text (default: one for every four characters); give it to the pruner too. */
  readonly countTokens?: TextTokenizer;
}

/**
 * A transform that leaves out what the pruner finds of little use to the question.
 *
 * Some messages stay whatever the limits are, and take their part of them: the instructions, the summary of a compaction,
 * and everything from the question on that the run began with, without which it would do its work again.
 *
 * @throws {SessionError} `INVALID_OPTION` for a pruner that is none, or a limit that is not a whole number of 0 or more.
 */
export function pruneContext(pruner: ContextPruner, limits: PruneContextLimits): ContextTransform {
  if (typeof pruner?.prune !== "function") throw invalid("The pruner of a context has no function prune.");
  const { maxTurns, maxTokens, countTokens = estimateTextTokens } = limits ?? {};
  checkCount(maxTurns, "maxTurns");
  if (maxTokens !== undefined) checkCount(maxTokens, "maxTokens");
  const tokensOf = (messages: readonly Message[]): number =>
    messages.reduce((sum, message) => sum + messageTokens(message, countTokens), 0);
  return async (messages, { query, question }) => {
    const start = startOf(messages, question);
    const summaries = messages.slice(0, start).filter(isSummary);
    const past = messages.slice(0, start).filter((message) => !isSummary(message));
    const system = past.filter(({ role }) => role === "system");
    const fixed = [...summaries, ...messages.slice(start)];
    const turns = Math.max(maxTurns - fixed.length, system.length);
    const tokens =
      maxTokens === undefined ? {} : { maxTokens: Math.max(maxTokens - tokensOf(fixed), tokensOf(system)) };
    const kept = await pruner.prune(past, query, turns, tokens);
    const said = kept.findIndex(({ role }) => role !== "system");
    const first = said < 0 ? kept.length : said;
    return [...kept.slice(0, first), ...summaries, ...kept.slice(first), ...messages.slice(start)];
  };
}

/**
 * The messages after all transforms, as every provider accepts them.
 *
 * @throws {SessionError} `INVALID_OPTION` for a transform that gives no messages. What a transform throws is passed on.
 */
export async function transformContext(
  messages: readonly Message[],
  transforms: readonly ContextTransform[],
  info: Omit<ContextInfo, "query">,
): Promise<readonly Message[]> {
  const last = messages.findLast(isQuestion);
  const known = new Set<unknown>(messages);
  const told = Object.freeze({ ...info, query: last === undefined ? "" : textOf(last.content) });
  let made: readonly Message[] = [...messages];
  for (const [index, transform] of transforms.entries()) {
    made = checkedMessages(await transform(made, told), known, index + 1);
  }
  const whole = acceptable(made);
  if (whole.length > 0 || messages.length === 0) return whole;
  throw invalid("The context transforms left no message to send; keep at least one.");
}

/** The user message that a run on a transcript answers; null when there is none. */
export function questionOf(transcript: Transcript): Message | null {
  for (let index = transcript.length - 1; index >= 0; index--) {
    const message = transcript.at(index)?.message;
    if (message !== undefined && isQuestion(message)) return message;
  }
  return null;
}

/** Where the question stands; the latest user message where it is not there any more. */
function startOf(messages: readonly Message[], question: Message | null): number {
  const found = question === null ? -1 : messages.lastIndexOf(question);
  const start = found < 0 ? messages.findLastIndex(isQuestion) : found;
  return start < 0 ? messages.length : start;
}

function isQuestion(message: Message): boolean {
  return message.role === "user" && !isSummary(message);
}

function isSummary(message: Message): boolean {
  return compactionSummaryOf(message) !== null;
}

/** The messages of a transform, each of which is one of the run's own or is checked like one. */
function checkedMessages(made: unknown, known: Set<unknown>, number: number): Message[] {
  if (!Array.isArray(made)) throw invalid(`Context transform ${number} gave no list of messages.`);
  return made.map((message: Message) => {
    if (known.has(message)) return message;
    try {
      const copy = checkedMessage(message);
      known.add(copy);
      return copy;
    } catch (cause) {
      const problem = describeThrown(cause);
      throw invalid(`Context transform ${number} gave a message that cannot be sent: ${problem}`, cause);
    }
  });
}

function invalid(message: string, cause?: unknown): SessionError {
  return new SessionError("INVALID_OPTION", message, cause === undefined ? {} : { cause });
}
