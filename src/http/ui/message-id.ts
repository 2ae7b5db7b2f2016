import { inputIdOf } from "../../session/open-runs.ts";

const INPUT = /^run:(.+?)(?:~[0-9a-f-]{36})?\/input$/s;

/** The run that a person's message asks for; with `again`, one more under the same message, which was changed. */
export function runIdOf(messageId: string, again?: string): string {
  return again === undefined ? messageId : `${messageId}~${again}`;
}

/** The id that a front end knows what a person said under: that of the message which asked for the run. */
export function messageIdOf(turnId: string): string {
  return INPUT.exec(turnId)?.[1] ?? turnId;
}

/** The id of the answer to what a person said. On each branch there is one. */
export function answerMessageIdOf(turnId: string): string {
  return `${messageIdOf(turnId)}/answer`;
}

/** The id of the answer of a run that was asked for with something said. */
export function answerMessageIdOfRun(runId: string): string {
  return answerMessageIdOf(inputIdOf(runId));
}
