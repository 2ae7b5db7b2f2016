import { SessionError } from "../session/errors.ts";
import type { SessionHead } from "../session/log/fold.ts";
import { checkName } from "../session/id.ts";

/** Who asks: a user by id. With `admin: true` they may see and change the sessions of everyone. */
export type Actor = string | { readonly userId: string; readonly admin?: boolean };

/** On whose behalf a call is made. */
export interface ActorOptions {
  /** Sessions of other users are then as good as missing. Left out, the call is the program's own and sees all. */
  readonly actor?: Actor;
}

/**
 * Whoever sits at the terminal, and whose the sessions are of a program that names nobody: the user that a server without
 * tokens of others serves, too.
 */
export const LOCAL_USER = "local";

/** The user whose sessions can be seen; null where that is everyone's. */
export type Viewer = string | null;

/**
 * Whose sessions a call may see.
 *
 * @throws {SessionError} `INVALID_OPTION` or `INVALID_ID` for an actor that is there and says nothing: a user id that got
 * lost on the way must not open everyone's sessions.
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

/** The stamp of what is appended on an actor's behalf; none where the call is the program's own. */
export function byOf({ actor }: ActorOptions): { readonly by?: string } {
  if (actor === undefined) return {};
  return { by: typeof actor === "string" ? actor : actor.userId };
}

/** Whether a session is one that the viewer may know of. */
export function isVisible(head: SessionHead, viewer: Viewer): boolean {
  return viewer === null || head.header.userId === viewer;
}
