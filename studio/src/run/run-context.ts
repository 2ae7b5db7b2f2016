import { createContext, useContext } from "react";
import type { RunQuestion } from "./run-question.ts";
import type { LiveTool } from "./run-state.ts";

/** The calls and questions of the open run. */
export interface RunCalls {
  /** The states of calls, by their ids. */
  readonly tools: Readonly<Record<string, LiveTool>>;
  /** The open questions. */
  readonly questions: readonly RunQuestion[];
  /** Whether a run is active. */
  readonly running: boolean;
}

/** The calls of the open run. */
export const RunCallsContext = createContext<RunCalls | null>(null);

/** The calls of the open run; null outside of a session. */
export function useRunCalls(): RunCalls | null {
  return useContext(RunCallsContext);
}
