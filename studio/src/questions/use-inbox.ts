import { createContext, useContext } from "react";
import type { Page, RunView } from "skein/client";
import { useClient } from "../request/use-client.ts";
import type { Requested } from "../request/use-request.ts";
import { useRevised } from "../request/use-revised.ts";
import { useTicks } from "../request/use-ticks.ts";

/** The first page of runs that wait for approval. */
export type Inbox = Requested<Page<RunView>>;

/** The maximum number of runs; `next` tells that there are more. */
const RUNS_MAX = 50;

/** How often it is reloaded while the page is visible. */
const POLL_MS = 10_000;

/** The open questions, shared by all pages. */
export const InboxContext = createContext<Inbox | null>(null);

/** The runs that wait for approval. */
export function useInbox(): Inbox {
  const inbox = useContext(InboxContext);
  if (inbox === null) throw new Error("There is no inbox above this component.");
  return inbox;
}

/** Loads the runs that wait for approval, and reloads them every few seconds while the page is visible. */
export function useReadInbox(): Inbox {
  const client = useClient();
  const ask = (signal: AbortSignal): Promise<Page<RunView>> =>
    client.runs.list({ state: "asking", limit: RUNS_MAX }, { signal });
  return useRevised("inbox", useTicks(POLL_MS), ask);
}

/** The number of open questions; with a plus if there are more than were loaded. */
export function countOf({ items, next }: Page<RunView>): string {
  const count = items.reduce((sum, { questions }) => sum + questions.length, 0);
  return `${count}${next === null ? "" : "+"}`;
}
