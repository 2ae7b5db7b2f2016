import type { ReactNode } from "react";
import type { Requested } from "./use-request.ts";

/** Shows what was asked for, or that it is on its way, or why it is not there, with a way to try again. */
export function Shown<T>({
  requested,
  what,
  children,
}: {
  readonly requested: Requested<T>;
  /** What is asked for, as in "the sessions". */
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
