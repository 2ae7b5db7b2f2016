import { useCallback, useEffect, useRef, useState } from "react";
import { useConnection } from "./client.ts";

/** The state of a request: loading, loaded or failed. Earlier data is kept during a reload. */
export interface Requested<T> {
  readonly data: T | null;
  readonly error: Error | null;
  readonly loading: boolean;
  /** Repeats the request. */
  readonly reload: () => void;
}

/**
 * Sends a request when the key changes, when the server is reachable again, and on `reload`. Late responses are
 * discarded.
 */
export function useRequest<T>(key: string, ask: (signal: AbortSignal) => Promise<T>): Requested<T> {
  const [state, setState] = useState<{ key: string; data: T | null; error: Error | null; loading: boolean }>({
    key,
    data: null,
    error: null,
    loading: true,
  });
  const [times, setTimes] = useState(0);
  const { returns } = useConnection();
  const latest = useRef(ask);
  latest.current = ask;
  // `times` and `returns` are dependencies, as a change of them repeats the request.
  useEffect(() => {
    const controller = new AbortController();
    setState((before) => {
      const data = before.key === key ? before.data : null;
      // An error beside earlier data is kept until there is new data; otherwise it would blink during frequent reloads.
      return { key, data, error: data === null ? null : before.error, loading: true };
    });
    latest.current(controller.signal).then(
      (data) => !controller.signal.aborted && setState({ key, data, error: null, loading: false }),
      (error: Error) => !controller.signal.aborted && setState((before) => ({ ...before, key, error, loading: false })),
    );
    return () => controller.abort();
  }, [key, times, returns]);
  const reload = useCallback(() => setTimes((count) => count + 1), []);
  const stale = state.key !== key;
  return {
    data: stale ? null : state.data,
    error: stale ? null : state.error,
    loading: stale || state.loading,
    reload,
  };
}
