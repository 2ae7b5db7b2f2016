import type { ReactNode } from "react";
import { ClientError } from "skein/client";
import { countFilters, type SessionFilter } from "./session-filter.ts";
import { SessionRows } from "./session-rows.tsx";
import type { SessionList } from "./use-session-list.ts";

/** The sessions that were found, or why there are none to see. */
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
        <p className="sessions-note soft small">Deleted sessions cannot be searched; these are all of them.</p>
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

/** Whether the studio says so already, below everything. */
function isUnreachable(error: Error): boolean {
  return error instanceof ClientError && error.code === "CONNECTION_FAILED";
}

function countText(count: number, more: boolean): string {
  if (more) return `${count} sessions, and more to load.`;
  return count === 1 ? "1 session." : `${count} sessions.`;
}

function emptyText(searched: boolean, filtered: boolean): string {
  if (searched) return filtered ? "No session of this kind says that." : "No session says that.";
  return filtered ? "No session is of this kind." : "There are no sessions yet. Begin with a new one.";
}
