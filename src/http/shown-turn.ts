import { inputIdOf } from "../session/log/open-runs.ts";
import type { SessionTurn } from "../session/state/state.ts";

/* The ids under which a front end knows the turns of a session. */

/** The fields of a turn that a front end shows. */
export type ShownTurn = Pick<SessionTurn, "turnId" | "role" | "content" | "toolCalls" | "toolCallId" | "isError">;

/**
 * Matches the turn id of a run's input. The run's id is the id of the message that requested it; a further run of the same
 * message has the suffix `~` and a UUID.
 */
const INPUT = /^run:(.+?)(?:~[0-9a-f-]{36})?\/input$/s;

/** The id under which a front end knows a user's turn: that of the message that requested the run. */
export function messageIdOf(turnId: string): string {
  return INPUT.exec(turnId)?.[1] ?? turnId;
}

/** The id of the message that requested a run. */
export function messageIdOfRun(runId: string): string {
  return messageIdOf(inputIdOf(runId));
}
