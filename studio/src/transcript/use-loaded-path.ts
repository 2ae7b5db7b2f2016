import { useCallback, useEffect, useRef, useState } from "react";
import { useClient } from "../request/use-client.ts";
import { continues, type HeldPath, joinLatest, joinOlder, type PathPage } from "./join-pages.ts";

const LATEST_ENTRIES = 60;
/** How many are asked for to learn what is new: seldom more are, and each may be large. */
const NEW_ENTRIES = 12;
const PAGE_ENTRIES_MAX = 1000;
const RETRY_MS = 1500;

/** The active path of a session, as far as it is loaded. */
export interface LoadedPath {
  /** Null until the first page is there. */
  readonly held: HeldPath | null;
  /** Why the first page is not there. */
  readonly error: Error | null;
  /** When the latest page that is shown was asked for. */
  readonly askedAt: number;
  /** Asks for the latest page again; what is shown stays until it is there. */
  readonly reload: () => void;
  /** Loads so many of the entries before those that are held; `before` is called right before they are shown. */
  readonly loadOlder: (entries: number, before?: () => void) => Promise<void>;
}

interface State {
  readonly held: HeldPath | null;
  readonly error: Error | null;
  readonly askedAt: number;
}

/** Loads the active path from its end, and its end again whenever the session has changed. */
export function useLoadedPath(sessionId: string, revision: number): LoadedPath {
  const client = useClient();
  const [state, setState] = useState<State>({ held: null, error: null, askedAt: 0 });
  const current = useRef(state);
  current.current = state;
  const poke = useRef<() => void>(() => {});
  const loading = useRef(false);

  useEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    let [wanted, done, busy] = [0, 0, false];
    // One request at a time: a busy session must not keep its own page from coming.
    const load = async (): Promise<void> => {
      busy = true;
      while (done < wanted && !signal.aborted) {
        const [target, askedAt] = [wanted, performance.now()];
        try {
          const { held: before } = current.current;
          const limit = before === null ? LATEST_ENTRIES : NEW_ENTRIES;
          let page = await client.sessions.path(sessionId, { limit }, { signal });
          if (!continues(before, page)) {
            page = await client.sessions.path(sessionId, { limit: LATEST_ENTRIES }, { signal });
          }
          setState(({ held }) => ({ held: joinLatest(held, page), error: null, askedAt }));
          done = target;
        } catch (error) {
          if (signal.aborted) return;
          setState((before) => ({ ...before, error: error as Error }));
          await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
        }
      }
      busy = false;
    };
    poke.current = () => {
      wanted += 1;
      if (!busy) void load();
    };
    return () => controller.abort();
  }, [client, sessionId]);

  useEffect(() => poke.current(), [revision, sessionId]);
  const reload = useCallback(() => poke.current(), []);
  const loadOlder = useCallback(
    async (entries: number, before?: () => void): Promise<void> => {
      const cursor = current.current.held?.older ?? null;
      if (cursor === null || loading.current) return;
      loading.current = true;
      try {
        let page: PathPage = { items: [], next: cursor };
        while (page.items.length < entries && page.next !== null) {
          const limit = Math.min(PAGE_ENTRIES_MAX, entries - page.items.length);
          const { items, next } = await client.sessions.path(sessionId, { limit, before: page.next });
          page = { items: [...items, ...page.items], next };
        }
        before?.();
        setState((now) => (now.held === null ? now : { ...now, held: joinOlder(now.held, cursor, page) }));
      } finally {
        loading.current = false;
      }
    },
    [client, sessionId],
  );
  return { ...state, reload, loadOlder };
}
