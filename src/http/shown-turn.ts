import { inputIdOf } from "../session/log/open-runs.ts";
import type { SessionTurn } from "../session/state/state.ts";

/* How a front end knows what was said. */

/** What of a turn a front end shows. */
export type ShownTurn = Pick<SessionTurn, "turnId" | "role" | "content" | "toolCalls" | "toolCallId" | "isError">;

/** What a message asked for; a `~` and a UUID stand in the id of one more run under the same message. */
const INPUT = /^run:(.+?)(?:~[0-9a-f-]{36})?\/input$/s;

/** The id that a front end knows what a person said under: that of the message which asked for the run. */
export function messageIdOf(turnId: string): string {
  return INPUT.exec(turnId)?.[1] ?? turnId;
}

/** The id of the message that asked for a run. */
export function messageIdOfRun(runId: string): string {
  return messageIdOf(inputIdOf(runId));
}
