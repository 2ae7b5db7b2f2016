import { createContext, useContext } from "react";
import type { Asked } from "./asked.ts";
import type { LiveTool } from "./run-state.ts";

/** The calls of the run that is open, and what it asks. */
export interface RunCalls {
  /** How calls stand, by their ids. */
  readonly tools: Readonly<Record<string, LiveTool>>;
  /** What waits for a person's word. */
  readonly questions: readonly Asked[];
  /** Whether a run goes on. */
  readonly running: boolean;
}

/** The calls of the run that is open. */
export const RunCallsContext = createContext<RunCalls | null>(null);

/** The calls of the run that is open; null where none can be. */
export function useRunCalls(): RunCalls | null {
  return useContext(RunCallsContext);
}
