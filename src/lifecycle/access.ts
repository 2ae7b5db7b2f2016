import { SessionError } from "../session/errors.ts";
import type { SessionHead } from "../session/log/fold.ts";
import { checkName } from "../session/id.ts";

/** The user on whose behalf a call is made. With `admin: true` they may see and change everyone's sessions. */
export type Actor = string | { readonly userId: string; readonly admin?: boolean };

/** Options of calls on behalf of a user. */
export interface ActorOptions {
  /**
   * With an actor, sessions of other users count as missing. Without one, the call is the program's own and sees all sessions.
   */
  readonly actor?: Actor;
}

/**
 * The user of the command line, the owner of sessions of a program that names no user, and the caller of a server without
 * authentication.
 */
export const LOCAL_USER = "local";

/** The user whose sessions are visible; null for all users. */
export type Viewer = string | null;

/**
 * Determines whose sessions a call may see.
 *
 * @throws {SessionError} `INVALID_OPTION` or `INVALID_ID` for an actor that is present but empty or invalid: a lost user id must
 * not grant access to everyone's sessions.
 */
export function viewerOf(options: ActorOptions): Viewer {
  if (typeof options !== "object" || options === null) {
    throw new SessionError("INVALID_OPTION", "The options of a call are not an object.");
  }
  if (!("actor" in options)) return null;
  const { actor } = options;
  if (typeof actor === "string") {
    checkName(actor, "a user");
    return actor;
  }
  if (typeof actor !== "object" || actor === null) {
    throw new SessionError(
      "INVALID_OPTION",
      `The option actor is ${String(actor)}; give a user id or { userId, admin }, or leave it out.`,
    );
  }
  const { userId, admin = false } = actor;
  checkName(userId, "a user");
  if (typeof admin !== "boolean") throw new SessionError("INVALID_OPTION", "actor.admin is neither true nor false.");
  return admin ? null : userId;
}

/** The stamp `by` of entries that are appended on behalf of an actor; empty for the program's own calls. */
export function byOf({ actor }: ActorOptions): { readonly by?: string } {
  if (actor === undefined) return {};
  return { by: typeof actor === "string" ? actor : actor?.userId };
}

/** Whether the viewer may see a session. */
export function isVisible(head: SessionHead, viewer: Viewer): boolean {
  return viewer === null || head.header.userId === viewer;
}
