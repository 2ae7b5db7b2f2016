import { useCallback, useEffect, useRef, useState } from "react";
import { useClient } from "../../request/use-client.ts";
import { useRequest } from "../../request/use-request.ts";
import { readSessions, type SessionRows } from "./read-sessions.ts";
import type { SessionFilter } from "./session-filter.ts";
import { onChange } from "../session-signals.ts";

/** How many sessions are loaded at first, and how many more each time. */
const PAGE = 50;

/** How often the list is reloaded while the page is visible. */
const POLL_MS = 3000;

/** Added to the interval for each loaded session, so that a long list does not keep the server busy. */
const POLL_MS_EACH = 15;

/** Changes within this time cause one reload. */
const GATHER_MS = 400;

/** A session list that is kept up to date. */
export interface SessionList {
  /** The rows of the filter; while they are loading, those of the previous filter. */
  readonly shown: SessionRows | null;
  /** Whether the rows are those of the previous filter. */
  readonly stale: boolean;
  /** Why the last request failed. */
  readonly error: Error | null;
  readonly reload: () => void;
  readonly loadMore: () => void;
}

/** The sessions that match a filter, reloaded every few seconds while the page is visible. */
export function useSessionList(filter: SessionFilter): SessionList {
  const client = useClient();
  const key = JSON.stringify(filter);
  const [pages, setPages] = useState({ key, count: 1 });
  const count = pages.key === key ? pages.count : 1;
  const requested = useRequest(key, (signal) => readSessions(client, filter, count * PAGE, signal));
  const { data, error, loading, reload } = requested;
  // A new attempt clears the error, which would make its message blink.
  const kept = useRef<{ rows: SessionRows | null; error: Error | null }>({ rows: null, error: null });
  if (data !== null) kept.current.rows = data;
  if (!loading) kept.current.error = error;
  usePolling(reload, loading, data?.read ?? 0);
  // Loading more repeats the whole request with a larger limit.
  useEffect(() => {
    if (count > 1) reload();
  }, [count, reload]);
  const loadMore = useCallback(
    () => setPages((before) => ({ key, count: (before.key === key ? before.count : 1) + 1 })),
    [key],
  );
  return { shown: data ?? kept.current.rows, stale: data === null, error: kept.current.error, reload, loadMore };
}

function usePolling(reload: () => void, loading: boolean, read: number): void {
  useEffect(() => {
    if (loading) return;
    const again = (): void => {
      if (document.visibilityState === "visible") reload();
    };
    const poll = setInterval(again, POLL_MS + read * POLL_MS_EACH);
    window.addEventListener("focus", again);
    document.addEventListener("visibilitychange", again);
    return () => {
      clearInterval(poll);
      window.removeEventListener("focus", again);
      document.removeEventListener("visibilitychange", again);
    };
  }, [reload, loading, read]);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | null = null;
    const stop = onChange(() => {
      timer ??= setTimeout(() => {
        timer = null;
        reload();
      }, GATHER_MS);
    });
    return () => {
      stop();
      if (timer !== null) clearTimeout(timer);
    };
  }, [reload]);
}
