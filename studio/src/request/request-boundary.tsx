import type { ReactNode } from "react";
import type { Requested } from "./use-request.ts";

/** Shows the data of a request, a loading note, or its error with a retry button. */
export function RequestBoundary<T>({
  requested,
  what,
  children,
}: {
  readonly requested: Requested<T>;
  /** What is loaded, as in "the sessions". */
  readonly what: string;
  readonly children: (data: T) => ReactNode;
}): ReactNode {
  const { data, error, loading, reload } = requested;
  if (error !== null && data === null) {
    return (
      <div role="alert" className="problem">
        <p>
          Could not load {what}: {error.message}
        </p>
        <button type="button" className="button" onClick={reload}>
          Try again
        </button>
      </div>
    );
  }
  if (data === null) return loading ? <output className="soft loading">Loading {what} …</output> : null;
  return children(data);
}
