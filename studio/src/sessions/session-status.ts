import type { ListedSession } from "skein/client";
import { frameworkOf } from "../../../src/session/framework.ts";

/** The state of a session, as one word. */
export type SessionMark =
  | "active"
  | "running"
  | "asking"
  | "requested"
  | "interrupted"
  | "suspended"
  | "closed"
  | "expired";

/** The names of the marks. */
export const MARK_NAMES: Readonly<Record<SessionMark, string>> = {
  active: "Active",
  running: "Running",
  asking: "Waits for approval",
  requested: "Waiting to run",
  interrupted: "Interrupted",
  suspended: "Suspended",
  closed: "Closed",
  expired: "Expired",
};

const TITLE_CHARACTERS_MAX = 200;

/** Bidirectional marks, with which a title could imitate another one. */
const DIRECTION_CHANGES = /[\u202a-\u202e\u2066-\u2069]/g;

/** The state of a session by its open runs: a started run that no process has was interrupted. */
export function markOf(session: Pick<ListedSession, "status" | "running" | "openRuns">): SessionMark {
  if (session.running !== null) return asksSomething(session) ? "asking" : "running";
  if (session.status !== "active") return session.status;
  const has = (state: ListedSession["openRuns"][number]["state"]): boolean =>
    session.openRuns.some((run) => run.state === state);
  if (has("started")) return "interrupted";
  if (asksSomething(session)) return "asking";
  return session.openRuns.length > 0 ? "requested" : "active";
}

/** Whether a run of a session waits for approval, parked or not. */
export function asksSomething({ openRuns }: Pick<ListedSession, "openRuns">): boolean {
  return openRuns.some(
    ({ state, questions = [], innerQuestions = [] }) =>
      state === "parked" || questions.length > 0 || innerQuestions.length > 0,
  );
}

/** The title of a session: its name, else its first message. */
export function titleOf(
  session: Pick<ListedSession, "name" | "firstMessage"> & Partial<Pick<ListedSession, "header">>,
): string {
  const title = [session.name, session.firstMessage].map(oneLine).find((text) => text !== "");
  const kept = session.header === undefined ? null : frameworkOf(session.header);
  return title ?? (kept === null ? "New session" : oneLine(`${kept.framework} ${kept.thread}`));
}

/** A text on one line, shortened, without control characters and bidirectional marks. */
function oneLine(text: string | null): string {
  const start = (text ?? "").slice(0, TITLE_CHARACTERS_MAX * 2);
  return start
    .replace(DIRECTION_CHANGES, "")
    .replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, " ")
    .trim()
    .slice(0, TITLE_CHARACTERS_MAX);
}
