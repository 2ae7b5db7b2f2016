import { sandboxBackend } from "../session/sandbox/sandbox-backends.ts";
import type { Session } from "../session/value/session.ts";
import type { Approval } from "../session/log/run-event.ts";

/** How a run stops that waits for answers with nobody at work: it is on record, and goes on once they are there. */
export class RunParked extends Error {
  readonly questions: readonly Approval[];

  constructor(questions: readonly Approval[]) {
    super("The run waits for answers.");
    this.questions = questions;
  }
}

/** Whether the files of a session's open sandbox are there again when the next one is opened. */
export async function keepsFiles({ sandbox }: Session): Promise<boolean> {
  if (sandbox === null) return false;
  return (await sandboxBackend(sandbox.backend)).keepsFiles?.(sandbox.spec) === true;
}

/** Whether whoever goes on with a session's run finds the place where its tools have acted. */
export async function canBeFound(session: Session): Promise<boolean> {
  const { sandbox } = session;
  if (sandbox === null || (await keepsFiles(session))) return true;
  return (await sandboxBackend(sandbox.backend)).attach !== undefined;
}
