import type { ReactNode } from "react";
import type { Entry } from "../../../src/session/log/entry.ts";
import type { Approval } from "../../../src/session/log/run-event.ts";
import { ApprovalCard } from "./approval-card.tsx";
import { useRunCalls } from "./run-context.ts";
import type { LiveRound } from "./run-state.ts";

/**
 * The questions that belong to no call in the transcript: those of runs inside tools, and of a run on another branch.
 */
export function OtherQuestions({
  sessionId,
  entries,
  rounds,
  inner,
}: {
  readonly sessionId: string;
  readonly entries: readonly Entry[];
  /** The rounds that are shown but not in the log yet. */
  readonly rounds: readonly LiveRound[];
  readonly inner: readonly Approval[];
}): ReactNode {
  const questions = useRunCalls()?.questions ?? [];
  const live = rounds.flatMap(({ message, calls }) => (message?.toolCalls ?? calls).map(({ id }) => id));
  const shown = new Set([...lastCalls(entries), ...live]);
  return [...questions.filter(({ callId }) => !shown.has(callId)), ...inner].map((asked) => (
    <ApprovalCard key={asked.question} sessionId={sessionId} asked={asked} />
  ));
}

/** The ids of the calls of the last answer on a path: a run only waits for these. */
function lastCalls(entries: readonly Entry[]): readonly string[] {
  for (let index = entries.length - 1; index >= 0; index--) {
    const entry = entries[index];
    if (entry?.type !== "message" || entry.message.role !== "assistant") continue;
    return (entry.message.toolCalls ?? []).map(({ id }) => id);
  }
  return [];
}
