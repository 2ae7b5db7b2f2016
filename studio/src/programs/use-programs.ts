import type { ProgramView, ProgramsView } from "skein/client";
import { useCallback, useEffect, useRef, useState } from "react";
import { type Action, useAction } from "../request/use-action.ts";
import { useClient } from "../request/use-client.ts";
import { useRequest } from "../request/use-request.ts";
import { announceChange } from "../sessions/session-signals.ts";

/** How often the progress is asked for while an import runs. */
const PROGRESS_MS = 1000;

/** The programs that the server found on its machine, and the action that imports their sessions. */
export interface Programs {
  /** Empty if there are none, or the server does not offer them. */
  readonly found: readonly ProgramView[];
  readonly bringIn: Action<[]>;
}

/** Whether an import is under way. */
export function isImporting({ progress }: ProgramView): boolean {
  return progress?.state === "queued" || progress?.state === "importing";
}

/** Asks the server which programs it found. Only `bringIn` makes it read their sessions. */
export function usePrograms(): Programs {
  const client = useClient();
  const [begun, setBegun] = useState<ProgramsView | null>(null);
  const { data, loading, reload } = useRequest("programs", async (signal) => {
    const view = await client.programs({ signal });
    setBegun(null);
    return view;
  });
  const bringIn = useAction(useCallback(async () => setBegun(await client.importPrograms()), [client]));
  const found = (begun ?? data)?.programs ?? [];
  const importing = found.some(isImporting);
  useEffect(() => {
    if (!importing || loading) return;
    const timer = setTimeout(reload, PROGRESS_MS);
    return () => clearTimeout(timer);
  }, [importing, loading, reload]);
  // The list of sessions grows during the import, and is complete at its end.
  const before = useRef(importing);
  useEffect(() => {
    if (before.current && !importing) announceChange();
    before.current = importing;
  }, [importing]);
  return { found, bringIn };
}
