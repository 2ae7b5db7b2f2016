import { hostname } from "node:os";
import { sandboxBackend } from "../session/sandbox-backends.ts";
import type { Session } from "../session/session.ts";
import type { ParkOptions } from "./loop-options.ts";
import type { Approval } from "./run-event.ts";
import type { RunProgress } from "./run-progress.ts";

const EXPIRE_MS_DEFAULT = 7 * 24 * 3_600_000;

/** How a run stops that waits for answers with nobody at work: it is on record, and goes on once they are there. */
export class RunParked extends Error {
  readonly questions: readonly Approval[];
  readonly expiresAt: string;

  constructor(questions: readonly Approval[], expiresAt: string) {
    super("The run waits for answers.");
    this.questions = questions;
    this.expiresAt = expiresAt;
  }
}

/** How a run lets go of its session while it waits for an answer. */
export interface Parking {
  readonly afterMs: number;
  /** Whether it may: whoever goes on finds everything again. */
  isPossible(): Promise<boolean>;
  /**
   * Puts on record which questions are open, asked for once nothing else is being written; null where none is any more, and
   * when others have said something meanwhile, which was heard.
   */
  park(open: () => readonly Approval[]): Promise<RunParked | null>;
}

/** How a run parks. */
export function parkingOf(progress: RunProgress, { afterMs, expireMs = EXPIRE_MS_DEFAULT }: ParkOptions): Parking {
  const { output } = progress;
  return {
    afterMs,
    isPossible: async () => progress.sink?.park !== undefined && (await canBeFound(output)),
    async park(open) {
      const expiresAt = new Date(Date.now() + expireMs).toISOString();
      const host = output.sandboxPlacement?.backend === "local" ? { host: hostname() } : {};
      let questions: readonly Approval[] = [];
      const parked = await progress.park(() => {
        questions = open();
        const asked = questions.map(({ callId, question }) => ({ callId, question }));
        return asked.length === 0 ? null : { questions: asked, expiresAt, ...host };
      });
      return parked ? new RunParked(questions, expiresAt) : null;
    },
  };
}

/** Whether the files of a session's open sandbox are there again when the next one is opened. */
export async function keepsFiles({ sandbox }: Session): Promise<boolean> {
  if (sandbox === null) return false;
  return (await sandboxBackend(sandbox.backend)).keepsFiles?.(sandbox.spec) === true;
}

/** Whether whoever goes on finds the place where the tools have acted. */
async function canBeFound(session: Session): Promise<boolean> {
  const { sandbox } = session;
  if (sandbox === null || (await keepsFiles(session))) return true;
  return (await sandboxBackend(sandbox.backend)).attach !== undefined;
}
