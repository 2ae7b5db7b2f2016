import { useEffect, useState } from "react";
import type { RunView } from "skein/client";
import { useConnection } from "../request/client.ts";
import { useClient } from "../request/use-client.ts";
import { type GroupRunState, NO_EVENTS, stepGroupRun } from "./group-run-state.ts";

/** How long events are buffered before a redraw, so that a fast model does not block the page. */
const GATHER_MS = 50;

/** A followed run of a group. */
export interface WatchedRun {
  readonly run: RunView;
  readonly state: GroupRunState;
  /** Why it cannot be followed any more. */
  readonly error: Error | null;
}

/** Follows the run of a group to its end; null without a run, and for the run of a single agent. */
export function useGroupRun(sessionId: string, runId: string | null): WatchedRun | null {
  const client = useClient();
  const [watched, setWatched] = useState<WatchedRun | null>(null);
  const { returns } = useConnection();
  // Runs again when the server is reachable again, which then may not know the run.
  useEffect(() => {
    if (runId === null) return;
    const controller = new AbortController();
    const { signal } = controller;
    let state = NO_EVENTS;
    let timer: ReturnType<typeof setTimeout> | null = null;
    const follow = async (): Promise<void> => {
      const run = await client.runs.get(sessionId, runId, { signal });
      if (run.group === null) return;
      setWatched({ run, state, error: null });
      const show = (): void => {
        timer = null;
        if (!signal.aborted) setWatched({ run, state, error: null });
      };
      for await (const event of client.runs.events(sessionId, runId, { signal })) {
        state = stepGroupRun(state, event);
        timer ??= setTimeout(show, GATHER_MS);
      }
    };
    follow().catch((error: Error) => {
      // The earlier output is in the session.
      if (!signal.aborted) setWatched((before) => (before?.run.runId === runId ? { ...before, error } : before));
    });
    return () => {
      controller.abort();
      if (timer !== null) clearTimeout(timer);
    };
  }, [client, sessionId, runId, returns]);
  return watched;
}
