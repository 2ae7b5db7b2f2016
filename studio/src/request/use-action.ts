import { useCallback, useRef, useState } from "react";

/** Something that someone does: whether it is under way, and why it did not work. */
export interface Action<A extends readonly unknown[]> {
  readonly busy: boolean;
  readonly error: Error | null;
  /** Does it; resolves to whether it worked. Does nothing while it is under way. */
  readonly run: (...args: A) => Promise<boolean>;
  /** Takes the error away. */
  readonly clear: () => void;
}

/** Wraps something that changes the server, so that a failure is shown and nothing is done twice. */
export function useAction<A extends readonly unknown[]>(work: (...args: A) => Promise<unknown>): Action<A> {
  const [state, setState] = useState<{ busy: boolean; error: Error | null }>({ busy: false, error: null });
  // What was clicked twice is asked for twice before the page could be drawn.
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
