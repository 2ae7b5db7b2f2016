import type { Entry } from "../../../src/session/log/entry.ts";
import type { AssistantMessage } from "../../../src/session/message.ts";
import { textOf } from "../transcript/content/content-text.ts";
import type { LiveRound } from "./run-state.ts";

/** How many entries at the end of the path are searched for the rounds of a run. */
const TAIL = 30;

/**
 * The rounds of a run that the transcript does not show yet. An answer is in the log before its tools run, and a
 * finished round is in every path that was requested later.
 */
export function roundsToShow(
  rounds: readonly LiveRound[],
  entries: readonly Entry[],
  askedAt: number,
): readonly LiveRound[] {
  const answers = entries.slice(-TAIL).flatMap((entry) => answerIn(entry) ?? []);
  const shown = new Set(answers.map(keyOf));
  const last = entries.at(-1);
  const leaf = last === undefined ? null : answerIn(last);
  return rounds.filter(({ endedAt, message, text, calls }) => {
    if (endedAt !== null) return endedAt >= askedAt && !(message !== null && shown.has(keyOf(message)));
    if (calls.length > 0) return !answers.some(({ toolCalls = [] }) => toolCalls.some(({ id }) => id === calls[0]?.id));
    // A round may start with the same text as an earlier answer; only an equal answer at the end of the path is the
    // round itself.
    return text === "" || leaf === null || textOf(leaf.content) !== text;
  });
}

function answerIn(entry: Entry): AssistantMessage | null {
  return entry.type === "message" && entry.message.role === "assistant" ? entry.message : null;
}

function keyOf({ content, toolCalls = [] }: AssistantMessage): string {
  return JSON.stringify([textOf(content), toolCalls.map(({ id }) => id)]);
}
