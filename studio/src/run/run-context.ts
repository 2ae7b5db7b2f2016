import { createContext, useContext } from "react";
import type { LiveTool } from "./run-state.ts";

/** The calls of the run that goes on, and the word of a person on them. */
export interface RunCalls {
  readonly tools: Readonly<Record<string, LiveTool>>;
  readonly approve: (callId: string) => Promise<void>;
  readonly deny: (callId: string, reason: string) => Promise<void>;
  /** Whether a run goes on here. */
  readonly running: boolean;
}

/** The calls of the run that goes on. */
export const RunCallsContext = createContext<RunCalls | null>(null);

/** The calls of the run that goes on; null where none can. */
export function useRunCalls(): RunCalls | null {
  return useContext(RunCallsContext);
}
