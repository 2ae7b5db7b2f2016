import { sandboxBackend } from "../session/sandbox/sandbox-backends.ts";
import type { Session } from "../session/value/session.ts";
import type { Approval } from "../session/log/run-event.ts";

/**
 * Thrown when a run stops because it waits for answers and no process needs to hold it: this is recorded, and the run
 * continues once they are given.
 */
export class RunParked extends Error {
  readonly questions: readonly Approval[];

  constructor(questions: readonly Approval[]) {
    super("The run waits for answers.");
    this.questions = questions;
  }
}

/** Whether the files of a session's open sandbox persist until the next one is opened. */
export async function keepsFiles({ sandbox }: Session): Promise<boolean> {
  if (sandbox === null) return false;
  return (await sandboxBackend(sandbox.backend)).keepsFiles?.(sandbox.spec) === true;
}

/** Whether the process that continues a session's run can find the sandbox in which its tools acted. */
export async function canBeFound(session: Session): Promise<boolean> {
  const { sandbox } = session;
  if (sandbox === null || (await keepsFiles(session))) return true;
  return (await sandboxBackend(sandbox.backend)).attach !== undefined;
}
