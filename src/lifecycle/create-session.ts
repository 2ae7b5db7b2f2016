import { defined } from "../internal/defined.ts";
import type { JsonObject } from "../internal/json.ts";
import { SessionError, show } from "../session/errors.ts";
import type { SandboxPlacement, SessionHeader } from "../session/log/header.ts";
import { createHeader } from "../session/log/header.ts";
import { checkName } from "../session/id.ts";
import type { Viewer } from "./access.ts";

/** What a new session is. */
export interface CreateSession {
  /** Whose it is. */
  readonly userId: string;
  readonly metadata?: JsonObject;
  /** The working directory that it belongs to (default: the manager's `workspace`). */
  readonly cwd?: string;
  /** Its id (default: one of the manager's). Only the program can choose one, not a user on whose behalf it acts. */
  readonly id?: string;
  /** What its requests begin with (default: the config's). */
  readonly systemPrompt?: string | null;
  /** Where the tools of its runs act (default: in the manager's `workspace`). */
  readonly sandbox?: SandboxPlacement;
}

/** What a manager adds to a new session. */
interface NewHeaderOptions {
  readonly viewer: Viewer;
  readonly ids: () => string;
  readonly clock: () => Date;
  /** In full; null for none. */
  readonly workspace: string | null;
}

/** Where tools act that work in a directory of this machine. */
export function placementOf(workspace: string): SandboxPlacement {
  return { backend: "local", spec: { workingDir: workspace }, handleId: null };
}

/**
 * The header of a new session.
 *
 * @throws {SessionError} `INVALID_OPTION` when the viewer may not make such a session, and what `createHeader` throws.
 */
export function newHeader(init: CreateSession, { viewer, ids, clock, workspace }: NewHeaderOptions): SessionHeader {
  if (typeof init !== "object" || init === null) {
    throw new SessionError("INVALID_OPTION", "A new session takes an object with a userId.");
  }
  const { userId, metadata, id } = init;
  const { cwd = workspace ?? undefined, sandbox = workspace === null ? undefined : placementOf(workspace) } = init;
  checkName(userId, "a user");
  if (viewer !== null && viewer !== userId) {
    throw new SessionError("INVALID_OPTION", `User ${show(viewer)} cannot make a session for user ${show(userId)}.`);
  }
  // The refusal of an id that is taken would tell a user of a session that they may not know of.
  if (viewer !== null && id !== undefined) {
    throw new SessionError("INVALID_OPTION", "A user cannot choose a session's id; leave out id, or actor.");
  }
  const createdAt = clock().toISOString();
  return createHeader({ id: id ?? ids(), createdAt, userId, ...defined({ metadata, cwd, sandbox }) });
}
