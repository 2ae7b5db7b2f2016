import { createContext, useContext } from "react";
import type { Page, RunView } from "skein/client";
import { useClient } from "../request/use-client.ts";
import type { Requested } from "../request/use-request.ts";
import { useRevised } from "../request/use-revised.ts";
import { useTicks } from "../request/use-ticks.ts";

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
  const ask = (signal: AbortSignal): Promise<Page<RunView>> =>
    client.runs.list({ state: "asking", limit: RUNS_MAX }, { signal });
  return useRevised("inbox", useTicks(POLL_MS), ask);
}

/** How many questions wait; with a plus where there are more than were read. */
export function countOf({ items, next }: Page<RunView>): string {
  const count = items.reduce((sum, { questions }) => sum + questions.length, 0);
  return `${count}${next === null ? "" : "+"}`;
}
