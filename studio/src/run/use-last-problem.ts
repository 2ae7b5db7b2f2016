import { useCallback, useEffect, useRef, useState } from "react";
import { useClient } from "../request/use-client.ts";
import type { RunProblem } from "./run-state.ts";

/** Why the last run of a session failed. */
export interface LastProblem {
  readonly problem: RunProblem | null;
  /** Records the result of a followed run; null at its start and if it succeeded. */
  readonly set: (runId: string, problem: RunProblem | null) => void;
  /** Clears the problem. */
  readonly dismiss: () => void;
}

/** Keeps the problem of the last run, also of one that ended before it could be followed. */
export function useLastProblem(sessionId: string, idle: boolean, revision: number): LastProblem {
  const client = useClient();
  const [problem, setProblem] = useState<RunProblem | null>(null);
  const last = useRef<string | null>(null);
  const dismissed = useRef<string | null>(null);
  useEffect(() => {
    if (!idle || revision < 0) return;
    const controller = new AbortController();
    const look = async (): Promise<void> => {
      const [run] = await client.runs.ofSession(sessionId, { limit: 1, signal: controller.signal });
      if (run === undefined || dismissed.current === run.runId || controller.signal.aborted) return;
      if (run.status === "failed" && run.problem !== null) {
        setProblem({ code: run.problem.code, message: run.problem.detail });
      }
      if (run.status === "finished") setProblem(null);
      last.current = run.runId;
    };
    // A failure is ignored, as the transcript shows the same.
    look().catch(() => {});
    return () => controller.abort();
  }, [client, sessionId, idle, revision]);
  const set = useCallback((runId: string, why: RunProblem | null) => {
    last.current = runId;
    setProblem(why);
  }, []);
  const dismiss = useCallback(() => {
    dismissed.current = last.current;
    setProblem(null);
  }, []);
  return { problem, set, dismiss };
}
