import type { Entry } from "../../../src/session/entry.ts";
import type { AssistantMessage } from "../../../src/session/message.ts";
import { textOf } from "../transcript/said.ts";
import type { LiveRound } from "./run-state.ts";

/** How many entries at the end of a path are looked through for the rounds of a run. */
const TAIL = 30;

/**
 * The rounds of a run that the transcript does not show yet. A round that is over is in the log, so that it is in every
 * path that was asked for later, and often in one that was asked for shortly before.
 */
export function roundsToShow(
  rounds: readonly LiveRound[],
  entries: readonly Entry[],
  askedAt: number,
): readonly LiveRound[] {
  const shown = new Set<string>();
  for (const entry of entries.slice(-TAIL)) {
    if (entry.type === "message" && entry.message.role === "assistant") shown.add(keyOf(entry.message));
  }
  return rounds.filter(({ endedAt, message }) => {
    if (endedAt === null) return true;
    return endedAt >= askedAt && !(message !== null && shown.has(keyOf(message)));
  });
}

function keyOf({ content, toolCalls = [] }: AssistantMessage): string {
  return JSON.stringify([textOf(content), toolCalls.map(({ id }) => id)]);
}
