import { createContext, useContext, useEffect } from "react";
import type { Page, RunView } from "skein/client";
import { useClient } from "../request/use-client.ts";
import { type Requested, useRequest } from "../request/use-request.ts";

/** The runs that wait for an answer, as many as one page shows. */
export type Inbox = Requested<Page<RunView>>;

/** The most runs that are shown; `next` says that there are more. */
const RUNS_MAX = 50;

/** How often it is read again while someone can see it. */
const POLL_MS = 10_000;

/** What the whole studio knows of open questions. */
export const InboxContext = createContext<Inbox | null>(null);

/** The runs that wait for an answer. */
export function useInbox(): Inbox {
  const inbox = useContext(InboxContext);
  if (inbox === null) throw new Error("There is no inbox above this component.");
  return inbox;
}

/** Reads the runs that wait for an answer, and again every few seconds while the page can be seen. */
export function useReadInbox(): Inbox {
  const client = useClient();
  const inbox = useRequest("inbox", (signal) => client.runs.list({ state: "parked", limit: RUNS_MAX }, { signal }));
  const { reload } = inbox;
  useEffect(() => {
    const again = (): void => {
      if (document.visibilityState === "visible") reload();
    };
    const poll = setInterval(again, POLL_MS);
    document.addEventListener("visibilitychange", again);
    return () => {
      clearInterval(poll);
      document.removeEventListener("visibilitychange", again);
    };
  }, [reload]);
  return inbox;
}

/** How many questions wait; with a plus where there are more than were read. */
export function countOf({ items, next }: Page<RunView>): string {
  const count = items.reduce((sum, { questions }) => sum + questions.length, 0);
  return `${count}${next === null ? "" : "+"}`;
}
