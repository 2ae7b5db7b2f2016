import { useCallback, useRef, useState } from "react";
import type { SessionView } from "skein/client";

/** The run of a session that is followed. */
export interface RunId {
  /** Null without an active run. */
  readonly id: string | null;
  /** Called when a run was started from here. */
  readonly begin: (runId: string) => void;
  /** Called when a run has ended, even if the loaded session still names it as active. */
  readonly end: (runId: string) => void;
}

/** The run that was started from here, else the session's active run; a parked run is not active. */
export function useRunId(session: SessionView): RunId {
  const [own, setOwn] = useState<string | null>(null);
  const [over, setOver] = useState<{ readonly id: string; readonly version: number } | null>(null);
  const latest = useRef(session);
  latest.current = session;
  const begin = useCallback((runId: string) => setOwn(runId), []);
  const end = useCallback((runId: string) => {
    setOwn((before) => (before === runId ? null : before));
    setOver({ id: runId, version: latest.current.version });
  }, []);
  const isParked = session.openRuns.some(({ runId, state }) => runId === own && state === "parked");
  const said = runAtWork(session);
  // An interrupted run continues under its id, so an ended run may become active again.
  const isStale = over !== null && over.id === said && session.version <= over.version;
  return { id: own !== null && !isParked ? own : isStale ? null : said, begin, end };
}

function runAtWork({ running, openRuns }: SessionView): string | null {
  if (running === null) return null;
  return openRuns.find(({ state }) => state === "started")?.runId ?? null;
}
