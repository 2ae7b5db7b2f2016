import type { ListedSession } from "skein/client";
import { frameworkOf } from "../../../src/session/framework.ts";

/** How a session stands, as one word. */
export type SessionMark =
  | "active"
  | "running"
  | "asking"
  | "requested"
  | "interrupted"
  | "suspended"
  | "closed"
  | "expired";

/** The words for the marks, as people read them. */
export const MARK_NAMES: Readonly<Record<SessionMark, string>> = {
  active: "Active",
  running: "Running",
  asking: "Waits for an answer",
  requested: "Waits its turn",
  interrupted: "Interrupted",
  suspended: "Suspended",
  closed: "Closed",
  expired: "Expired",
};

const TITLE_CHARACTERS_MAX = 200;

/** Characters that make the text after them run the other way, so that a title could pass for another. */
const DIRECTION_CHANGES = /[\u202a-\u202e\u2066-\u2069]/g;

/** How a session stands, by what is open in it: a run that has started and that nobody has was interrupted. */
export function markOf(session: Pick<ListedSession, "status" | "running" | "openRuns">): SessionMark {
  if (session.running !== null) return asksSomething(session) ? "asking" : "running";
  if (session.status !== "active") return session.status;
  const has = (state: ListedSession["openRuns"][number]["state"]): boolean =>
    session.openRuns.some((run) => run.state === state);
  if (has("started")) return "interrupted";
  if (asksSomething(session)) return "asking";
  return session.openRuns.length > 0 ? "requested" : "active";
}

/** Whether a run of a session waits for an answer, parked or not. */
export function asksSomething({ openRuns }: Pick<ListedSession, "openRuns">): boolean {
  return openRuns.some(
    ({ state, questions = [], innerQuestions = [] }) =>
      state === "parked" || questions.length > 0 || innerQuestions.length > 0,
  );
}

/** What a session is called: its name, else how it began. */
export function titleOf(
  session: Pick<ListedSession, "name" | "firstMessage"> & Partial<Pick<ListedSession, "header">>,
): string {
  const title = [session.name, session.firstMessage].map(oneLine).find((text) => text !== "");
  const kept = session.header === undefined ? null : frameworkOf(session.header);
  return title ?? (kept === null ? "New session" : oneLine(`${kept.framework} ${kept.thread}`));
}

/** A text on one line, without what a terminal or a page could take for a command, and not longer than anyone reads. */
function oneLine(text: string | null): string {
  const start = (text ?? "").slice(0, TITLE_CHARACTERS_MAX * 2);
  return start
    .replace(DIRECTION_CHANGES, "")
    .replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, " ")
    .trim()
    .slice(0, TITLE_CHARACTERS_MAX);
}
