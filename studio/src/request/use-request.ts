import { useCallback, useEffect, useRef, useState } from "react";
import { useConnection } from "./client.ts";

/** Something that was asked for: not there yet, there, or refused. The last answer stays while it is asked for again. */
export interface Requested<T> {
  readonly data: T | null;
  readonly error: Error | null;
  readonly loading: boolean;
  /** Asks again. */
  readonly reload: () => void;
}

/**
 * Asks for something when the key changes, when the server is back after it was away, and whenever it is told to.
 * Answers that come too late are dropped.
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
  // Asking again is what `times` and `returns` are for.
  useEffect(() => {
    const controller = new AbortController();
    setState((before) => {
      const data = before.key === key ? before.data : null;
      // Beside an old answer, it is told until there is a new one: whoever asks often would see it come and go.
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
