import { useEffect, useState } from "react";
import type { SessionView } from "skein/client";
import { useConnection } from "../request/client.ts";
import { useClient } from "../request/use-client.ts";
import { type Requested, useRequest } from "../request/use-request.ts";

/** How long new entries are buffered before a redraw, so that a busy session does not block the page. */
const GATHER_MS = 60;

/** A session that is updated with the changes of all clients. */
export interface LiveSession extends Requested<SessionView> {
  /** Grows with every change of the session; data that depends on its entries is then reloaded. */
  readonly revision: number;
}

/** Follows a session; continues after the server was unreachable. */
export function useLiveSession(id: string): LiveSession {
  const client = useClient();
  const requested = useRequest(id, (signal) => client.sessions.get(id, { signal }));
  const [revision, setRevision] = useState(0);
  const { reload } = requested;
  const { returns } = useConnection();
  const version = requested.data?.version ?? null;
  const known = version !== null;
  // Not dependent on the version, which is only the start position; the watch reconnects by itself.
  useEffect(() => {
    if (version === null) return;
    const controller = new AbortController();
    let timer: ReturnType<typeof setTimeout> | null = null;
    const note = (): void => {
      timer = null;
      setRevision((count) => count + 1);
      reload();
    };
    const follow = async (): Promise<void> => {
      for await (const _entry of client.sessions.watch(id, { after: version - 1, signal: controller.signal })) {
        timer ??= setTimeout(note, GATHER_MS);
      }
    };
    follow().catch(() => {
      // If the user has lost access, the next request reports it.
      if (!controller.signal.aborted) note();
    });
    return () => {
      controller.abort();
      if (timer !== null) clearTimeout(timer);
    };
  }, [client, id, known, reload, returns]);
  return { ...requested, revision: revision + returns };
}
