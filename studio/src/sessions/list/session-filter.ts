import type { ListSessions } from "skein/client";
import type { SessionStatus } from "../../../../src/session/log/entry.ts";
import { asksSomething, markOf, type SessionMark } from "../session-status.ts";

/** The filter of the session list. */
export interface SessionFilter {
  /** Words, "phrases", or `re:` and a pattern; empty for all. */
  readonly search: string;
  readonly userId: string;
  readonly cwd: string;
  /** The name of a program; empty for all. */
  readonly program: string;
  readonly show: ShowChoice;
}

/** The required state of the sessions. */
export type ShowChoice = "all" | SessionMark | "deleted";

/** All sessions that are not deleted. */
export const NO_FILTER: SessionFilter = { search: "", userId: "", cwd: "", program: "", show: "all" };

/** The states to choose from, with their names. */
export const SHOW_CHOICES: readonly { readonly value: ShowChoice; readonly name: string }[] = [
  { value: "all", name: "All" },
  { value: "running", name: "Running" },
  { value: "asking", name: "Waits for approval" },
  { value: "requested", name: "Waiting to run" },
  { value: "interrupted", name: "Interrupted" },
  { value: "active", name: "Active" },
  { value: "suspended", name: "Suspended" },
  { value: "closed", name: "Closed" },
  { value: "expired", name: "Expired" },
  { value: "deleted", name: "Deleted" },
];

/** The programs to choose from, by the names that the server knows. */
export const PROGRAM_CHOICES: readonly { readonly value: string; readonly name: string }[] = [
  { value: "", name: "Any program" },
  { value: "skein", name: "Skein" },
  { value: "claude-code", name: "Claude Code" },
  { value: "codex", name: "Codex" },
  { value: "opencode", name: "opencode" },
  { value: "openrath", name: "OpenRath" },
  { value: "pi", name: "pi" },
  { value: "LangGraph", name: "LangGraph" },
  { value: "OpenAI Agents", name: "OpenAI Agents" },
];

type RunsChoice = NonNullable<ListSessions["runs"]>;

/** The required state of an open run; null for any. */
export function runsOf(show: ShowChoice): RunsChoice | null {
  return RUNS.find((word) => word === show) ?? null;
}

const RUNS: readonly RunsChoice[] = ["running", "asking", "requested", "interrupted"];

/** The part of a filter that the server applies, also to a search. */
export function queryOf({
  userId,
  cwd,
  program,
  show,
}: SessionFilter): Pick<ListSessions, "userId" | "cwd" | "program" | "status"> {
  const status = show === "all" || show === "deleted" || runsOf(show) !== null ? null : (show as SessionStatus);
  return {
    ...(userId.trim() === "" ? {} : { userId: userId.trim() }),
    ...(cwd.trim() === "" ? {} : { cwd: cwd.trim() }),
    ...(program === "" ? {} : { program }),
    ...(status === null ? {} : { status }),
  };
}

/** Whether a search result matches the chosen state. */
export function isShown(session: Parameters<typeof markOf>[0], show: ShowChoice): boolean {
  if (show === "running") return session.running !== null;
  if (show === "asking") return asksSomething(session);
  return runsOf(show) === null || markOf(session) === show;
}

/** Why the pattern of a search is invalid; null if it is valid. */
export function patternProblem(search: string): string | null {
  const pattern = /(?<=^|\s)re:(.*)$/s.exec(search.trim())?.[1]?.trim();
  if (pattern === undefined) return null;
  if (pattern === "") return "Give a pattern after re:.";
  try {
    new RegExp(pattern, "iu");
    return null;
  } catch {
    return "The text after re: is not a valid regular expression.";
  }
}

/** The number of active filters, without the search. */
export function countFilters({ userId, cwd, program, show }: SessionFilter): number {
  return [userId.trim() !== "", cwd.trim() !== "", program !== "", show !== "all"].filter(Boolean).length;
}
