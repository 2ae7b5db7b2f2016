import type { SessionStatus } from "./log/entry.ts";
import type { SessionHead } from "./log/fold.ts";

/** One row of a listing of sessions. */
export interface SessionSummary {
  readonly id: string;
  /** The session's file, if it has one. */
  readonly path?: string;
  readonly name: string | null;
  readonly cwd: string | null;
  readonly userId: string | null;
  readonly createdAt: string;
  readonly modifiedAt: string;
  readonly messageCount: number;
  readonly firstMessage: string | null;
  readonly status: SessionStatus;
  readonly closed: boolean;
  /** Why the session cannot be read; absent for a readable session. */
  readonly damage?: string;
}

/** The row of a session in a listing. */
export function summaryOf(head: SessionHead, path?: string): SessionSummary {
  const { id, cwd, userId, createdAt } = head.header;
  const { name, modifiedAt, messageCount, firstMessage, status, closed } = head;
  const row = { id, name, cwd, userId, createdAt, modifiedAt, messageCount, firstMessage, status, closed };
  return path === undefined ? row : { ...row, path };
}
