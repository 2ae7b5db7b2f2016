import { type KeyboardEvent, type MouseEvent, type ReactNode, useCallback, useRef, useState } from "react";
import { useAction } from "../request/use-action.ts";
import { useClient } from "../request/use-client.ts";
import { useMe } from "../request/use-me.ts";
import { goTo } from "../shell/route.ts";
import { ImportButton } from "./import/import-button.tsx";
import { ImportDrop } from "./import/import-drop.tsx";
import { countFilters, NO_FILTER, type SessionFilter } from "./list/session-filter.ts";
import { SessionFilters } from "./list/session-filters.tsx";
import { SessionListing } from "./list/session-listing.tsx";
import { announceChange, withdrawUndo } from "./session-signals.ts";
import { UndoToast } from "./undo-toast.tsx";
import { useNewSession } from "./use-new-session.ts";
import { useSessionList } from "./list/use-session-list.ts";
import { useDebounced } from "./list/use-debounced.ts";
import { useShortcuts } from "./use-shortcuts.ts";
import "./sessions.css";

/** How long to wait after the last key press before the list is filtered. */
const TYPING_MS = 250;

/** The list of sessions, with search and filters. */
export function SessionsSidebar({ selectedId }: { readonly selectedId: string | null }): ReactNode {
  const client = useClient();
  const [filter, setFilter] = useState<SessionFilter>(NO_FILTER);
  const [filtering, setFiltering] = useState(false);
  const asked = useDebounced(filter, TYPING_MS);
  const list = useSessionList(asked);
  const create = useNewSession();
  const restore = useAction(useCallback((id: string) => client.sessions.undelete(id).then(noteRestored), [client]));
  const whole = useRef<HTMLDivElement>(null);
  const focusSearch = (): void => {
    const field = (): HTMLInputElement | null => whole.current?.querySelector("input[type=search]") ?? null;
    // On a phone, the list is a separate page.
    if (field()?.offsetParent === null) goTo({ page: "sessions" });
    requestAnimationFrame(() => field()?.select());
  };
  useShortcuts({ "/": focusSearch, n: () => void create.run() });
  const start = ({ detail }: MouseEvent): void => {
    // Ignores the second click of a double click.
    if (detail < 2) void create.run();
  };
  const enterList = (event: KeyboardEvent): void => {
    if (event.key !== "ArrowDown") return;
    event.preventDefault();
    whole.current?.querySelector<HTMLElement>(".sessions-row[tabindex='0']")?.focus();
  };
  const filters = countFilters(filter);
  const known = useKnown(list.shown?.rows.map(({ session }) => session.header) ?? []);
  return (
    <div ref={whole} className="sessions-side">
      <div className="sessions-tools">
        <div className="sessions-line">
          <input
            type="search"
            className="field"
            aria-label="Search sessions"
            aria-keyshortcuts="/"
            placeholder="Search sessions  /"
            title={'Words, "exact phrases", or re: and a regular expression'}
            maxLength={1000}
            value={filter.search}
            onChange={(event) => setFilter({ ...filter, search: event.target.value })}
            onKeyDown={enterList}
          />
          <button
            type="button"
            className="button"
            aria-expanded={filtering}
            onClick={() => setFiltering((before) => !before)}
          >
            Filter{filters > 0 && <span className="sessions-count">{filters}</span>}
          </button>
        </div>
        {filtering && (
          <SessionFilters filter={filter} onChange={setFilter} users={known.users} projects={known.projects} />
        )}
        <button
          type="button"
          className="button button-primary sessions-new"
          aria-keyshortcuts="n"
          title="New session (n)"
          disabled={create.busy}
          onClick={start}
        >
          New session
        </button>
        <div className="sessions-import">
          <ImportButton />
        </div>
        <ImportDrop />
        {[create.error, restore.error].map(
          (error) =>
            error !== null && (
              <p key={error.message} role="alert" className="sessions-problem small">
                {error.message}
              </p>
            ),
        )}
      </div>
      <SessionListing list={list} filter={asked} selectedId={selectedId} onRestore={(id) => void restore.run(id)} />
      <UndoToast />
    </div>
  );
}

function noteRestored(): void {
  withdrawUndo();
  announceChange();
}

/** The users and directories seen so far, to choose from; users only for administrators. */
function useKnown(headers: readonly { readonly userId: string | null; readonly cwd: string | null }[]): {
  readonly users: readonly string[] | null;
  readonly projects: readonly string[];
} {
  const admin = useMe()?.admin === true;
  const seen = useRef({ users: new Set<string>(), projects: new Set<string>() });
  for (const { userId, cwd } of headers) {
    if (userId !== null) seen.current.users.add(userId);
    if (cwd !== null) seen.current.projects.add(cwd);
  }
  return { users: admin ? [...seen.current.users].sort() : null, projects: [...seen.current.projects].sort() };
}
