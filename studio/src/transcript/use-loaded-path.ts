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
/** How many are asked for to learn what is new: seldom more are, and each may be large. */
const NEW_ENTRIES = 12;
/** How many entries are loaded on each side of one that is sought. */
const AROUND_ENTRIES = 30;
const PAGE_ENTRIES = 150;
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
  /** Loads a page of what stands before; `before` is called right before it is shown. */
  readonly loadOlder: (before: () => void) => Promise<void>;
  /** Loads a page of what comes after. */
  readonly loadNewer: () => Promise<void>;
  /** Holds what stands around an entry instead; false where it is not on the active path. */
  readonly loadAround: (entryId: string) => Promise<boolean>;
  /** Holds the end of the path instead. */
  readonly loadEnd: () => Promise<void>;
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

/** Asks for what is new; the result adds it to what is held by then. */
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
    // Nothing comes after what is held, which is the end by now, or not on the active path any more.
  }
  let page = await latest(before === null ? LATEST_ENTRIES : NEW_ENTRIES);
  if (!continues(before, page)) page = await latest(LATEST_ENTRIES);
  // What was sought meanwhile stays.
  return (held) => (held !== before && held?.newer != null ? held : joinLatest(held, page));
}

/** The ways to hold other parts of a path, which stay the same objects. */
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
