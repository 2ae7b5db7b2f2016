import { useCallback, useRef, useState } from "react";

/** An action of the user: whether it is running, and its error. */
export interface Action<A extends readonly unknown[]> {
  readonly busy: boolean;
  readonly error: Error | null;
  /** Runs it; resolves to whether it succeeded. Does nothing while it is running. */
  readonly run: (...args: A) => Promise<boolean>;
  /** Clears the error. */
  readonly clear: () => void;
}

/** Wraps a change on the server: a failure is shown, and a second call during the first is ignored. */
export function useAction<A extends readonly unknown[]>(work: (...args: A) => Promise<unknown>): Action<A> {
  const [state, setState] = useState<{ busy: boolean; error: Error | null }>({ busy: false, error: null });
  // A ref, as a double click calls twice before the state is rendered.
  const underWay = useRef(false);
  const run = useCallback(
    async (...args: A): Promise<boolean> => {
      if (underWay.current) return false;
      underWay.current = true;
      setState({ busy: true, error: null });
      try {
        await work(...args);
        setState({ busy: false, error: null });
        return true;
      } catch (error) {
        setState({ busy: false, error: error as Error });
        return false;
      } finally {
        underWay.current = false;
      }
    },
    [work],
  );
  const clear = useCallback(() => setState({ busy: false, error: null }), []);
  return { ...state, run, clear };
}
