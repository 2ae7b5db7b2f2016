import { useEffect, useState } from "react";
import type { SessionView } from "skein/client";
import { useConnection } from "../request/client.ts";
import { useClient } from "../request/use-client.ts";
import { type Requested, useRequest } from "../request/use-request.ts";

/** How long entries are gathered before the page takes note of them, so that a busy session does not keep it busy. */
const GATHER_MS = 60;

/** A session that is kept up to date, whoever writes to it. */
export interface LiveSession extends Requested<SessionView> {
  /** Grows with everything that happens in the session; what is made of its entries is asked for again then. */
  readonly revision: number;
}

/** Follows a session from now on. After the server was away, it goes on where it was. */
export function useLiveSession(id: string): LiveSession {
  const client = useClient();
  const requested = useRequest(id, (signal) => client.sessions.get(id, { signal }));
  const [revision, setRevision] = useState(0);
  const { reload } = requested;
  const { returns } = useConnection();
  const version = requested.data?.version ?? null;
  const known = version !== null;
  // The version only says where to begin, and a server that is back need not be waited for.
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
      // Whoever may not watch any more is told by the next request.
      if (!controller.signal.aborted) note();
    });
    return () => {
      controller.abort();
      if (timer !== null) clearTimeout(timer);
    };
  }, [client, id, known, reload, returns]);
  return { ...requested, revision: revision + returns };
}
