import { useCallback, useEffect, useRef, useState } from "react";
import type { SessionView } from "skein/client";

/** Which run of a session is followed. */
export interface RunId {
  /** Null when no run goes on here. */
  readonly id: string | null;
  /** A run was started from here. */
  readonly begin: (runId: string) => void;
  /** A run is over, whatever the session says of it until it is read again. */
  readonly end: (runId: string) => void;
}

/** The run that was started from here, or else the one that the session says this server has. */
export function useRunId(session: SessionView): RunId {
  const [own, setOwn] = useState<string | null>(null);
  const [over, setOver] = useState<{ readonly id: string; readonly session: SessionView } | null>(null);
  const latest = useRef(session);
  latest.current = session;
  const { running } = session;
  const said = running?.here === true ? running.runId : null;
  // A run that was interrupted goes on under its old id, so that being over is not for good.
  useEffect(() => {
    if (over !== null && session !== over.session && said !== over.id) setOver(null);
  }, [over, session, said]);
  const begin = useCallback((runId: string) => {
    setOver((before) => (before?.id === runId ? null : before));
    setOwn(runId);
  }, []);
  const end = useCallback((runId: string) => {
    setOwn((before) => (before === runId ? null : before));
    setOver({ id: runId, session: latest.current });
  }, []);
  return { id: own ?? (said === over?.id ? null : said), begin, end };
}
