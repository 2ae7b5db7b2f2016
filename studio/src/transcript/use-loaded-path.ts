import {
  type Dispatch,
  type RefObject,
  type SetStateAction,
  useCallback,
  useEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import type { Client } from "skein/client";
import { useClient } from "../request/use-client.ts";
import { continues, type HeldPath, joinLatest, joinNewer, joinOlder, type PathPage } from "./join-pages.ts";

const LATEST_ENTRIES = 60;
/** How many entries a request for new entries gets: more are rarely new, and each may be large. */
const NEW_ENTRIES = 12;
/** How many entries are loaded on each side of an entry that the URL names. */
const AROUND_ENTRIES = 30;
const PAGE_ENTRIES = 150;
const RETRY_MS = 1500;

/** The loaded part of a session's active path. */
export interface LoadedPath {
  /** Null until the first page is loaded. */
  readonly held: HeldPath | null;
  /** Why the first page could not be loaded. */
  readonly error: Error | null;
  /** When the latest loaded page was requested. */
  readonly askedAt: number;
  /** Requests the latest page again; the loaded part is kept until it arrives. */
  readonly reload: () => void;
  /** Loads the page before; `before` is called right before it is rendered. */
  readonly loadOlder: (before: () => void) => Promise<void>;
  /** Loads the page after. */
  readonly loadNewer: () => Promise<void>;
  /** Replaces the loaded part by the entries around an entry; false if that is not on the active path. */
  readonly loadAround: (entryId: string) => Promise<boolean>;
  /** Replaces the loaded part by the end of the path. */
  readonly loadEnd: () => Promise<void>;
}

interface State {
  readonly held: HeldPath | null;
  readonly error: Error | null;
  readonly askedAt: number;
}

/** Loads the active path from its end, and its end again after every change of the session. */
export function useLoadedPath(sessionId: string, revision: number): LoadedPath {
  const client = useClient();
  const [state, setState] = useState<State>({ held: null, error: null, askedAt: 0 });
  const current = useRef(state);
  current.current = state;
  const poke = useRef<() => void>(() => {});

  useEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    let [wanted, done, busy] = [0, 0, false];
    // One request at a time: a busy session must not cancel its own page again and again.
    const load = async (): Promise<void> => {
      busy = true;
      while (done < wanted && !signal.aborted) {
        const [target, askedAt] = [wanted, performance.now()];
        try {
          const join = await readAgain(client, sessionId, current.current.held, signal);
          setState(({ held }) => ({ held: join(held), error: null, askedAt }));
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
  return { ...state, reload, ...useMoreOfPath(sessionId, current, setState) };
}

/** Requests new entries; returns a function that adds them to the loaded part at that time. */
async function readAgain(
  client: Client,
  sessionId: string,
  before: HeldPath | null,
  signal: AbortSignal,
): Promise<(held: HeldPath | null) => HeldPath | null> {
  const latest = (limit: number): Promise<PathPage> => client.sessions.path(sessionId, { limit }, { signal });
  const last = before?.entries.at(-1)?.id;
  if (before !== null && before.newer !== null && last !== undefined) {
    const page = await client.sessions.path(sessionId, { after: last, limit: NEW_ENTRIES }, { signal });
    if (page.next !== null) return (held) => held;
    if (page.items.length > 0) return (held) => held && joinNewer(held, last, page);
    // No page follows the loaded part: it reaches the end by now, or is no longer on the active path.
  }
  let page = await latest(before === null ? LATEST_ENTRIES : NEW_ENTRIES);
  if (!continues(before, page)) page = await latest(LATEST_ENTRIES);
  // If another part was loaded meanwhile, that is kept.
  return (held) => (held !== before && held?.newer != null ? held : joinLatest(held, page));
}

/** The functions that load other parts of a path; they stay the same objects. */
function useMoreOfPath(
  sessionId: string,
  current: RefObject<State>,
  setState: Dispatch<SetStateAction<State>>,
): Pick<LoadedPath, "loadOlder" | "loadNewer" | "loadAround" | "loadEnd"> {
  const client = useClient();
  const loading = useRef(false);
  return useMemo(() => {
    const hold = (join: (held: HeldPath) => HeldPath): void =>
      setState((now) => (now.held === null ? now : { ...now, held: join(now.held) }));
    const once = async (load: () => Promise<void>): Promise<void> => {
      if (loading.current) return;
      loading.current = true;
      await load().finally(() => {
        loading.current = false;
      });
    };
    return {
      loadOlder: (show) =>
        once(async () => {
          const before = current.current.held?.older ?? null;
          if (before === null) return;
          const page = await client.sessions.path(sessionId, { before, limit: PAGE_ENTRIES });
          show();
          hold((held) => joinOlder(held, before, page));
        }),
      loadNewer: () =>
        once(async () => {
          const after = current.current.held?.newer ?? null;
          if (after === null) return;
          const page = await client.sessions.path(sessionId, { after, limit: PAGE_ENTRIES });
          hold((held) => joinNewer(held, after, page));
        }),
      loadAround: async (entryId) => {
        const after = await client.sessions.path(sessionId, { after: entryId, limit: AROUND_ENTRIES });
        if (after.items.length === 0) {
          const { items: end } = await client.sessions.path(sessionId, { limit: 1 });
          if (end[0]?.id !== entryId) return false;
        }
        const { items, next } = await client.sessions.path(sessionId, { leafId: entryId, limit: AROUND_ENTRIES });
        hold(() => ({ entries: [...items, ...after.items], older: next, newer: after.next }));
        return true;
      },
      loadEnd: async () => {
        const page = await client.sessions.path(sessionId, { limit: LATEST_ENTRIES });
        hold(() => joinLatest(null, page));
      },
    };
  }, [client, sessionId, current, setState]);
}
