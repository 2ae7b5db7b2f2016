import { useEffect, useRef } from "react";
import { type Requested, useRequest } from "../request/use-request.ts";

/** Asks again whenever the revision is another one, and keeps the last answer until the next is there. */
export function useRevisedRequest<T>(
  key: string,
  revision: number | string,
  ask: (signal: AbortSignal) => Promise<T>,
): Requested<T> {
  const requested = useRequest(key, ask);
  const { reload } = requested;
  const seen = useRef({ key, revision });
  useEffect(() => {
    // A new key is asked for by itself.
    const changed = seen.current.key === key && seen.current.revision !== revision;
    seen.current = { key, revision };
    if (changed) reload();
  }, [key, revision, reload]);
  return requested;
}
