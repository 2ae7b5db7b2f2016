import { useCallback, useRef, useState } from "react";
import type { SessionView } from "skein/client";

/** Which run of a session is followed. */
export interface RunId {
  /** Null when none goes on. */
  readonly id: string | null;
  /** A run was started from here. */
  readonly begin: (runId: string) => void;
  /** A run is over, whatever the session says of it until it is read again. */
  readonly end: (runId: string) => void;
}

/** The run that was started from here, or else the one that the session says is at work; a parked one is not. */
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
  // A run that was interrupted goes on under its old id, so that being over is not for good.
  const isStale = over !== null && over.id === said && session.version <= over.version;
  return { id: own !== null && !isParked ? own : isStale ? null : said, begin, end };
}

function runAtWork({ running, openRuns }: SessionView): string | null {
  if (running === null) return null;
  return openRuns.find(({ state }) => state === "started")?.runId ?? null;
}
