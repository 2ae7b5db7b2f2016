import type { ReactNode } from "react";
import { ClientError } from "skein/client";
import { countFilters, type SessionFilter } from "./session-filter.ts";
import { SessionRows } from "./session-rows.tsx";
import type { SessionList } from "./use-session-list.ts";

/** The sessions of the list, or why there are none. */
export function SessionListing({
  list,
  filter,
  selectedId,
  onRestore,
}: {
  readonly list: SessionList;
  readonly filter: SessionFilter;
  readonly selectedId: string | null;
  readonly onRestore: (id: string) => void;
}): ReactNode {
  const { shown, stale, error, reload, loadMore } = list;
  const deleted = filter.show === "deleted";
  const searched = filter.search.trim() !== "" && !deleted;
  if (error !== null && stale) {
    return (
      <div role="alert" className="sessions-note sessions-problem">
        <p>{error.message}</p>
        <button type="button" className="button" onClick={reload}>
          Try again
        </button>
      </div>
    );
  }
  if (shown === null) return <output className="sessions-note soft">Loading the sessions …</output>;
  const { rows, more } = shown;
  return (
    <>
      {error !== null && !isUnreachable(error) && (
        <p role="alert" className="sessions-note sessions-problem small">
          {error.message} Trying again …
        </p>
      )}
      {deleted && filter.search.trim() !== "" && (
        <p className="sessions-note soft small">Deleted sessions cannot be searched; all of them are shown.</p>
      )}
      <output className="only-for-readers">{stale ? "" : countText(rows.length, more)}</output>
      {rows.length === 0 ? (
        <p className="sessions-note soft">{emptyText(searched, countFilters(filter) > 0)}</p>
      ) : (
        <SessionRows
          rows={rows}
          search={searched ? filter.search : ""}
          selectedId={selectedId}
          busy={stale}
          onRestore={deleted ? onRestore : null}
        >
          {more && (
            <button type="button" className="button sessions-more" onClick={loadMore}>
              Load more
            </button>
          )}
        </SessionRows>
      )}
    </>
  );
}

/** Whether the connection banner already reports this error. */
function isUnreachable(error: Error): boolean {
  return error instanceof ClientError && error.code === "CONNECTION_FAILED";
}

function countText(count: number, more: boolean): string {
  if (more) return `${count} sessions, and more to load.`;
  return count === 1 ? "1 session." : `${count} sessions.`;
}

function emptyText(searched: boolean, filtered: boolean): string {
  if (searched) return filtered ? "No session with this filter matches." : "No session matches.";
  return filtered ? "No session matches the filter." : "There are no sessions yet. Start a new one.";
}
