import { describeThrown } from "../agent/describe-thrown.ts";

/** The context of a failure in background work; the operation that started it succeeded. */
export interface FailureContext {
  readonly during: "access" | "memory" | "consolidator" | "listener" | "auto-checkpoint" | "delete" | "sweep";
  /** The session concerned, or null. */
  readonly sessionId: string | null;
}

/** Called when background work has failed. */
export type ReportFailure = (error: unknown, context: FailureContext) => void;

/** Emits a failure as a process warning. */
export function warnOfFailure(error: unknown, { during, sessionId }: FailureContext): void {
  const where = sessionId === null ? "" : ` of session ${sessionId}`;
  process.emitWarning(`The ${during}${where} failed: ${describeThrown(error)}`);
}

/** Wraps a report function so that it cannot throw. */
export function safeReport(report: ReportFailure): ReportFailure {
  return (error, context) => {
    try {
      report(error, context);
    } catch (thrown) {
      warnOfFailure(error, context);
      warnOfFailure(thrown, context);
    }
  };
}
