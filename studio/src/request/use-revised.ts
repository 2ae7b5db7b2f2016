import { useEffect, useRef } from "react";
import { type Requested, useRequest } from "./use-request.ts";

/** How long to wait before a failed request is repeated. */
const RETRY_MS = 2_000;

/**
 * Sends a request when the key or the revision changes, one at a time, so that a busy session neither starves the page
 * nor floods the server. A failed request is repeated automatically.
 */
export function useRevised<T>(
  key: string,
  revision: number | string,
  ask: (signal: AbortSignal) => Promise<T>,
): Requested<T> {
  const requested = useRequest(key, ask);
  const { loading, error, reload } = requested;
  const seen = useRef(revision);
  useEffect(() => {
    if (loading || seen.current === revision) return;
    seen.current = revision;
    reload();
  }, [loading, revision, reload]);
  useEffect(() => {
    if (error === null || loading) return;
    const timer = setTimeout(reload, RETRY_MS);
    return () => clearTimeout(timer);
  }, [error, loading, reload]);
  return requested;
}
