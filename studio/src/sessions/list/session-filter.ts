import type { ListSessions } from "skein/client";
import type { SessionStatus } from "../../../../src/session/log/entry.ts";
import { asksSomething, markOf, type SessionMark } from "../session-look.ts";

/** Which sessions someone wants to see. */
export interface SessionFilter {
  /** Words, "phrases", `re:` and a pattern; empty for all. */
  readonly search: string;
  readonly userId: string;
  readonly cwd: string;
  readonly show: ShowChoice;
}

/** How the sessions that are shown must stand. */
export type ShowChoice = "all" | SessionMark | "deleted";

/** Everything that is not deleted. */
export const NO_FILTER: SessionFilter = { search: "", userId: "", cwd: "", show: "all" };

/** The choices of how a session must stand, with their words. */
export const SHOW_CHOICES: readonly { readonly value: ShowChoice; readonly name: string }[] = [
  { value: "all", name: "All" },
  { value: "running", name: "Running" },
  { value: "asking", name: "Waits for an answer" },
  { value: "requested", name: "Waits its turn" },
  { value: "interrupted", name: "Interrupted" },
  { value: "active", name: "Active" },
  { value: "suspended", name: "Suspended" },
  { value: "closed", name: "Closed" },
  { value: "expired", name: "Expired" },
  { value: "deleted", name: "Deleted" },
];

type RunsChoice = NonNullable<ListSessions["runs"]>;

/** How an open run of the sessions must stand; null where that does not matter. */
export function runsOf(show: ShowChoice): RunsChoice | null {
  return RUNS.find((word) => word === show) ?? null;
}

const RUNS: readonly RunsChoice[] = ["running", "asking", "requested", "interrupted"];

/** The part of a filter that the server can answer, also for a search. */
export function queryOf({ userId, cwd, show }: SessionFilter): Pick<ListSessions, "userId" | "cwd" | "status"> {
  const status = show === "all" || show === "deleted" || runsOf(show) !== null ? null : (show as SessionStatus);
  return {
    ...(userId.trim() === "" ? {} : { userId: userId.trim() }),
    ...(cwd.trim() === "" ? {} : { cwd: cwd.trim() }),
    ...(status === null ? {} : { status }),
  };
}

/** Whether a session that a search found is one of those that are to be shown. */
export function isShown(session: Parameters<typeof markOf>[0], show: ShowChoice): boolean {
  if (show === "running") return session.running !== null;
  if (show === "asking") return asksSomething(session);
  return runsOf(show) === null || markOf(session) === show;
}

/** What is wrong with the pattern of a search, before the server is asked; null when nothing is. */
export function patternProblem(search: string): string | null {
  const pattern = /(?<=^|\s)re:(.*)$/s.exec(search.trim())?.[1]?.trim();
  if (pattern === undefined) return null;
  if (pattern === "") return "Give a pattern after re:.";
  try {
    new RegExp(pattern, "iu");
    return null;
  } catch {
    return "What comes after re: is not a regular expression yet.";
  }
}

/** How many parts of a filter are in force, the search aside. */
export function countFilters({ userId, cwd, show }: SessionFilter): number {
  return [userId.trim() !== "", cwd.trim() !== "", show !== "all"].filter(Boolean).length;
}
