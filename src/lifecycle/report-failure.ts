import { describeThrown } from "../agent/describe-thrown.ts";

/** What failed beside an operation that went well. */
export interface FailureContext {
  readonly during: "access" | "memory" | "consolidator" | "listener" | "auto-checkpoint" | "delete" | "sweep";
  /** The session that it was about, where it was about one. */
  readonly sessionId: string | null;
}

/** Told of what failed beside an operation that went well. */
export type ReportFailure = (error: unknown, context: FailureContext) => void;

/** Makes a failure a warning of the process. */
export function warnOfFailure(error: unknown, { during, sessionId }: FailureContext): void {
  const where = sessionId === null ? "" : ` of session ${sessionId}`;
  process.emitWarning(`The ${during}${where} failed: ${describeThrown(error)}`);
}

/** A report that cannot fail itself. */
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
