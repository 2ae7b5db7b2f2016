import { inputIdOf } from "../../session/log/open-runs.ts";

const INPUT = /^run:(.+?)(?:~[0-9a-f-]{36})?\/input$/s;

/** The run that a person's message asks for; with `again`, a UUID, one more under the same message. */
export function runIdOf(messageId: string, again?: string): string {
  return again === undefined ? messageId : `${messageId}~${again}`;
}

/** The id that a front end knows what a person said under: that of the message which asked for the run. */
export function messageIdOf(turnId: string): string {
  return INPUT.exec(turnId)?.[1] ?? turnId;
}

/** The id of the answer to a message of a person. On each branch there is one. */
export function answerIdOf(messageId: string): string {
  return `${messageId}/answer`;
}

/** The id of the answer that a run gives. */
export function answerIdOfRun(runId: string): string {
  return answerIdOf(messageIdOf(inputIdOf(runId)));
}
